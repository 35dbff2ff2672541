/* Framing and fields, as PROTOCOL.md describes them. */
#ifndef FRAMES_H
#define FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef PROTOCOL_VERSION /* tests build a cell of another version */
#define PROTOCOL_VERSION 1
#endif
#define FRAME_MAX (1u << 20)
#define CHUNK_MAX (64u << 10)
#define PART '\x1f'

enum kind {
  REQUEST = 1, REPLY = 2, EVENT = 3, ERROR = 4, END = 5, ENTRY = 6,
  STDOUT = 16, STDERR = 17, STDIN = 18, STDIN_END = 19, RESIZE = 20, SIGNAL = 21, EXIT = 22, GAP = 23, DATA = 24, HAND = 25,
};

struct header {
  uint32_t length;
  uint8_t kind;
  uint8_t reserved[3];
};

/* A received payload of fields; `data` is NUL-terminated after every field. */
struct fields {
  const char *data;
  size_t length;
};

/* A payload under construction. */
struct output {
  char *data;
  size_t length, capacity;
};

bool fields_valid(const struct fields *fields);
const char *field(const struct fields *fields, const char *key);                       /* first value or NULL */
const char *field_next(const struct fields *fields, const char *key, const char *after); /* next value of a repeated key; NULL starts */
size_t field_count(const struct fields *fields, const char *key);
bool field_number(const struct fields *fields, const char *key, int64_t *value);       /* false: absent or not a decimal number */
bool field_flag(const struct fields *fields, const char *key);                         /* true only for "1" */
size_t split_parts(char *value, char **parts, size_t most);                            /* splits at PART in place */
void put(struct output *output, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));
void put_bytes(struct output *output, const void *data, size_t length);
void output_free(struct output *output);
int write_all(int fd, const void *data, size_t length);                                /* blocking; 0 or -1 */
int read_all(int fd, void *data, size_t length);                                       /* blocking; 0, or -1 with errno 0 at end of file */
int send_frame(int fd, uint8_t kind, const void *payload, size_t length);              /* blocking */
int send_output(int fd, uint8_t kind, struct output *output);                          /* blocking; frees output */
int send_error(int fd, const char *id, const char *code, int error, const char *step, const char *message);
/* Blocking read of one frame into a malloc'd, NUL-terminated buffer. Returns 0, or -1 (end, bad frame, error). */
int receive_frame(int fd, struct header *header, char **payload);
const char *code_of_errno(int error);

#endif
