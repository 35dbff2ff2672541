/* The channel to the server is the one that Node makes for a child with `ipc`: a line of JSON a message, and the descriptor of a
   socket travels with its line. Node closes its own copy, or sends its next message, only after each descriptor is acknowledged. */
#include "parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACKNOWLEDGED "{\"cmd\":\"NODE_HANDLE_ACK\"}\n"
#define WITH_DESCRIPTOR "{\"cmd\":\"NODE_HANDLE\","
#define TEXT "\"msg\":\""

struct message {
  struct message *next;
  size_t start, length;
  int fd;               /* -1: none */
  char data[];
};

static struct source channel = {.fd = -1};
static struct message *first, **last = &first;
static size_t waiting;
static char line[LINE_MAX_BYTES];
static size_t line_length;
static int descriptors[DESCRIPTORS_WAITING_MAX];
static size_t descriptor_count;

bool channel_crowded(void) { return waiting >= MESSAGES_WAITING_MAX; }

static ssize_t send_message(const struct message *message) {
  union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof(int))]; } control = {0};
  struct iovec data = {.iov_base = (void *)(message->data + message->start), .iov_len = message->length - message->start};
  struct msghdr head = {.msg_iov = &data, .msg_iovlen = 1};
  if (message->fd >= 0) {
    head.msg_control = &control;
    head.msg_controllen = sizeof control;
    struct cmsghdr *rights = CMSG_FIRSTHDR(&head);
    *rights = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(rights), &message->fd, sizeof(int));
  }
  return sendmsg(channel.fd, &head, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void flush(void) {
  bool crowded = channel_crowded();
  while (first != NULL) {
    struct message *message = first;
    ssize_t count = send_message(message);
    /* Too many descriptors are under way: it is tried again when the server has read. */
    if (count < 0 && (errno == EAGAIN || errno == EINTR || errno == ETOOMANYREFS)) break;
    if (count < 0) exit(0); /* the server is gone, and with it what it decided */
    message->start += (size_t)count;
    if (message->fd >= 0) close(message->fd);
    message->fd = -1;
    if (message->start < message->length) continue;
    first = message->next;
    if (first == NULL) last = &first;
    waiting--;
    free(message);
  }
  mover_watch(&channel, EPOLLIN | (first == NULL ? 0u : (uint32_t)EPOLLOUT));
  if (crowded && !channel_crowded()) doors_resume();
}

static void append(int fd, const char *before, const char *text, const char *more, const char *after) {
  size_t length = strlen(before) + strlen(text) + strlen(more) + strlen(after);
  struct message *message = malloc(sizeof *message + length + 1);
  if (message == NULL) exit(1);
  *message = (struct message){.length = length, .fd = fd};
  snprintf(message->data, length + 1, "%s%s%s%s", before, text, more, after);
  *last = message;
  last = &message->next;
  waiting++;
  if (first == message) flush();
}

void channel_say(const char *format, ...) {
  char text[256];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  append(-1, "\"", text, "", "\"\n");
}

void channel_show(const char *text, const uint8_t *data, size_t length) {
  static const char digits[] = "0123456789abcdef";
  char *shown = malloc(2 * length + 1);
  if (shown == NULL) exit(1);
  for (size_t at = 0; at < length; at++) {
    shown[2 * at] = digits[data[at] >> 4];
    shown[2 * at + 1] = digits[data[at] & 15];
  }
  shown[2 * length] = '\0';
  append(-1, "\"", text, shown, "\"\n");
  free(shown);
}

bool channel_give(int fd, const char *text) {
  int copy = dup(fd);
  if (copy >= 0) append(copy, WITH_DESCRIPTOR "\"type\":\"net.Socket\"," TEXT, text, "", "\"}\n");
  return copy >= 0;
}

void channel_take_descriptor(int fd) {
  if (descriptor_count == DESCRIPTORS_WAITING_MAX) exit(1);
  descriptors[descriptor_count++] = fd;
}

static int next_descriptor(void) {
  if (descriptor_count == 0) return -1;
  int fd = descriptors[0];
  memmove(descriptors, descriptors + 1, --descriptor_count * sizeof descriptors[0]);
  return fd;
}

/* The server's messages need no escapes. What is not one of them is Node's own word. */
static void take_line(char *text) {
  char *end;
  if (text[0] == '"') {
    if ((end = strchr(text + 1, '"')) == NULL) return;
    *end = '\0';
    return server_request(text + 1, -1);
  }
  if (strncmp(text, WITH_DESCRIPTOR, strlen(WITH_DESCRIPTOR)) != 0) return;
  int fd = next_descriptor();
  if (fd >= 0) append(-1, "", ACKNOWLEDGED, "", "");
  char *message = strstr(text, TEXT);
  if (message != NULL && (end = strchr(message + strlen(TEXT), '"')) != NULL) {
    *end = '\0';
    server_request(message + strlen(TEXT), fd);
  } else if (fd >= 0) {
    close(fd);
  }
}

void channel_take(const char *data, size_t length) {
  for (size_t at = 0; at < length; at++) {
    if (data[at] == '\n') {
      line[line_length] = '\0';
      line_length = 0;
      take_line(line);
    } else {
      if (line_length == sizeof line - 1) exit(1);
      line[line_length++] = data[at];
    }
  }
}

static void take_control(struct msghdr *message) {
  for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head != NULL; head = CMSG_NXTHDR(message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; CMSG_LEN((at + 1) * sizeof(int)) <= head->cmsg_len; at++) {
      int fd;
      memcpy(&fd, CMSG_DATA(head) + at * sizeof fd, sizeof fd);
      channel_take_descriptor(fd);
    }
  }
}

static void channel_ready(struct source *source, uint32_t events) {
  if (events & EPOLLOUT) flush();
  if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
  char data[16 << 10];
  union { struct cmsghdr align; char bytes[CMSG_SPACE(16 * sizeof(int))]; } control;
  struct iovec part = {.iov_base = data, .iov_len = sizeof data};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t count = recvmsg(source->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) exit(0);
  take_control(&message);
  channel_take(data, (size_t)count);
}

void channel_open(int fd) {
  channel = (struct source){.fd = fd, .ready = channel_ready};
  if (mover_watch(&channel, EPOLLIN) != 0) exit(1);
}
