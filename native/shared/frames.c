/* Framing and fields, as PROTOCOL.md describes them. */
#include "frames.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool fields_valid(const struct fields *fields) {
  if (fields->length == 0) return true;
  if (fields->data[fields->length - 1] != '\0') return false;
  for (size_t at = 0; at < fields->length;) {
    const char *entry = fields->data + at;
    size_t length = strlen(entry);
    const char *equals = memchr(entry, '=', length);
    if (equals == NULL || equals == entry) return false;
    at += length + 1;
  }
  return true;
}

const char *field_next(const struct fields *fields, const char *key, const char *after) {
  size_t key_length = strlen(key);
  size_t at = after == NULL ? 0 : (size_t)(after - fields->data) + strlen(after) + 1;
  while (at < fields->length) {
    const char *entry = fields->data + at;
    if (strncmp(entry, key, key_length) == 0 && entry[key_length] == '=') return entry + key_length + 1;
    at += strlen(entry) + 1;
  }
  return NULL;
}

const char *field(const struct fields *fields, const char *key) { return field_next(fields, key, NULL); }

size_t field_count(const struct fields *fields, const char *key) {
  size_t count = 0;
  for (const char *value = field(fields, key); value != NULL; value = field_next(fields, key, value)) count++;
  return count;
}

bool field_number(const struct fields *fields, const char *key, int64_t *value) {
  const char *text = field(fields, key);
  if (text == NULL || *text == '\0') return false;
  char *end;
  errno = 0;
  long long number = strtoll(text, &end, 10);
  if (errno != 0 || *end != '\0') return false;
  *value = number;
  return true;
}

bool field_flag(const struct fields *fields, const char *key) {
  const char *value = field(fields, key);
  return value != NULL && strcmp(value, "1") == 0;
}

size_t split_parts(char *value, char **parts, size_t most) {
  size_t count = 0;
  while (count < most) {
    parts[count++] = value;
    char *separator = strchr(value, PART);
    if (separator == NULL) break;
    *separator = '\0';
    value = separator + 1;
  }
  return count;
}

static void reserve(struct output *output, size_t more) {
  if (output->length + more <= output->capacity) return;
  size_t capacity = output->capacity == 0 ? 256 : output->capacity;
  while (capacity < output->length + more) capacity *= 2;
  char *data = realloc(output->data, capacity);
  if (data == NULL) abort();
  output->data = data;
  output->capacity = capacity;
}

void put_bytes(struct output *output, const void *data, size_t length) {
  reserve(output, length);
  memcpy(output->data + output->length, data, length);
  output->length += length;
}

void put(struct output *output, const char *key, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  put_bytes(output, key, strlen(key));
  put_bytes(output, "=", 1);
  reserve(output, (size_t)length + 1);
  vsnprintf(output->data + output->length, (size_t)length + 1, format, again);
  va_end(again);
  output->length += (size_t)length + 1;
}

void output_free(struct output *output) {
  free(output->data);
  *output = (struct output){0};
}

int write_all(int fd, const void *data, size_t length) {
  const char *at = data;
  while (length > 0) {
    ssize_t written = write(fd, at, length);
    if (written < 0) {
      if (errno == EINTR) continue;
      return -1;
    }
    at += written;
    length -= (size_t)written;
  }
  return 0;
}

int read_all(int fd, void *data, size_t length) {
  char *at = data;
  while (length > 0) {
    ssize_t count = read(fd, at, length);
    if (count < 0) {
      if (errno == EINTR) continue;
      return -1;
    }
    if (count == 0) {
      errno = 0;
      return -1;
    }
    at += count;
    length -= (size_t)count;
  }
  return 0;
}

int send_frame(int fd, uint8_t kind, const void *payload, size_t length) {
  char small[sizeof(struct header) + 512];
  struct header header = {.length = (uint32_t)length, .kind = kind};
  if (length <= sizeof small - sizeof header) {
    memcpy(small, &header, sizeof header);
    if (length > 0) memcpy(small + sizeof header, payload, length);
    return write_all(fd, small, sizeof header + length);
  }
  if (write_all(fd, &header, sizeof header) != 0) return -1;
  return write_all(fd, payload, length);
}

int send_output(int fd, uint8_t kind, struct output *output) {
  int result = send_frame(fd, kind, output->data, output->length);
  output_free(output);
  return result;
}

int send_error(int fd, const char *id, const char *code, int error, const char *step, const char *message) {
  struct output output = {0};
  if (id != NULL) put(&output, "id", "%s", id);
  put(&output, "code", "%s", code);
  put(&output, "errno", "%d", error);
  put(&output, "step", "%s", step);
  put(&output, "message", "%s", message != NULL ? message : strerror(error));
  return send_output(fd, ERROR, &output);
}

int receive_frame(int fd, struct header *header, char **payload) {
  *payload = NULL;
  if (read_all(fd, header, sizeof *header) != 0) return -1;
  if (header->length > FRAME_MAX || header->reserved[0] || header->reserved[1] || header->reserved[2]) {
    errno = EPROTO;
    return -1;
  }
  char *buffer = malloc(header->length + 1);
  if (buffer == NULL) return -1;
  if (read_all(fd, buffer, header->length) != 0) {
    free(buffer);
    return -1;
  }
  buffer[header->length] = '\0';
  *payload = buffer;
  return 0;
}

const char *code_of_errno(int error) {
  switch (error) {
    case ENOENT: return "not-found";
    case EACCES: case EPERM: case EROFS: return "denied";
    case EEXIST: return "exists";
    case ENOTDIR: return "not-directory";
    case EISDIR: return "is-directory";
    case ENOTEMPTY: return "not-empty";
    case ENOSPC: case EDQUOT: return "no-space";
    case EAGAIN: case EMFILE: case ENFILE: return "too-many";
    case ENOEXEC: return "not-runnable";
    case EINVAL: case ENAMETOOLONG: case ELOOP: return "bad-request";
    default: return "failed";
  }
}
