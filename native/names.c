/* Names for programs that know no proxy. Every name gets an address of 198.18.0.0/15, which a route makes this machine's
   own, and nobody is asked: what a program then dials is told to the proxy by its name. */
#include "init.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAMES_FIRST (NAMES_NETWORK + 0x100) /* below it: the resolver itself */
#define QUESTION_MAX 512
#define HEADER 12

enum { TYPE_A = 1, TYPE_ANY = 255, CLASS_IN = 1, RCODE_OK = 0, RCODE_FORMAT = 1, RCODE_NO_NAME = 3, RCODE_REFUSED = 5 };

struct stream {
  struct source source;
  size_t length;
  uint8_t data[2 + QUESTION_MAX];
};

static struct source datagrams, streams;
static size_t stream_count;
/* The names in the order they came; the oldest makes room. */
static char *names[NAMES_MAX];
static size_t name_next;

const char *name_of(uint32_t address) {
  return address >= NAMES_FIRST && address - NAMES_FIRST < NAMES_MAX ? names[address - NAMES_FIRST] : NULL;
}

static uint32_t address_of(const char *name) {
  for (size_t at = 0; at < NAMES_MAX && names[at] != NULL; at++)
    if (strcmp(names[at], name) == 0) return NAMES_FIRST + (uint32_t)at;
  char *copy = strdup(name);
  if (copy == NULL) return 0;
  size_t slot = name_next;
  name_next = (name_next + 1) % NAMES_MAX;
  free(names[slot]);
  names[slot] = copy;
  return NAMES_FIRST + (uint32_t)slot;
}

static bool is_local(const char *name) {
  char own[65] = "";
  size_t length = strlen(name);
  gethostname(own, sizeof own - 1);
  return strcmp(name, "localhost") == 0 || strcasecmp(name, own) == 0 || (length > 10 && strcmp(name + length - 10, ".localhost") == 0);
}

/* The name of a question in lower case, empty if no host can have it, and where it ends. NULL: it does not. */
static const uint8_t *read_name(const uint8_t *at, const uint8_t *end, char name[256]) {
  size_t length = 0;
  bool fit = true;
  for (;;) {
    if (at >= end || *at > 63 || end - at < 1 + *at) return NULL;
    size_t label = *at++;
    if (label == 0) break;
    if (length + label + 1 > 254) return NULL;
    if (length > 0) name[length++] = '.';
    for (size_t i = 0; i < label; i++, at++) {
      bool inner = i > 0 && i + 1 < label;
      if (!isalnum(*at) && *at != '_' && !(*at == '-' && inner)) fit = false;
      name[length++] = (char)tolower(*at);
    }
  }
  name[fit ? length : 0] = '\0';
  return at;
}

static size_t answer_with(uint8_t *message, size_t question_end, int rcode, uint32_t address) {
  message[2] = (uint8_t)(0x80 | (message[2] & 0x79)); /* an answer; opcode and RD as asked */
  message[3] = (uint8_t)(0x80 | rcode);
  memset(message + 4, 0, HEADER - 4);
  message[5] = question_end > HEADER;
  if (address == 0) return question_end;
  message[7] = 1;
  /* The name of the question, A, IN, forgotten soon, four bytes. */
  const uint8_t record[] = {0xc0, HEADER, 0, TYPE_A, 0, CLASS_IN, 0, 0, 0, 60, 0, 4,
                            (uint8_t)(address >> 24), (uint8_t)(address >> 16), (uint8_t)(address >> 8), (uint8_t)address};
  memcpy(message + question_end, record, sizeof record);
  return question_end + sizeof record;
}

/* Turns a question into its answer, in place; room for one record must be behind it. 0: not worth one. */
static size_t answer(uint8_t *message, size_t length) {
  char name[256];
  if (length < HEADER || (message[2] & 0x80) != 0) return 0;
  bool one = (message[2] & 0x78) == 0 && message[4] == 0 && message[5] == 1;
  const uint8_t *end = message + length, *after = one ? read_name(message + HEADER, end, name) : NULL;
  if (after == NULL || end - after < 4) return answer_with(message, HEADER, RCODE_FORMAT, 0);
  size_t question_end = (size_t)(after + 4 - message);
  int type = after[0] << 8 | after[1], class = after[2] << 8 | after[3];
  if (name[0] == '\0') return answer_with(message, question_end, RCODE_NO_NAME, 0);
  if (is_local(name)) return answer_with(message, question_end, RCODE_OK, type == TYPE_A ? INADDR_LOOPBACK : 0);
  if (!direct_allowed()) return answer_with(message, question_end, RCODE_REFUSED, 0);
  bool wanted = class == CLASS_IN && (type == TYPE_A || type == TYPE_ANY);
  uint32_t address = wanted ? address_of(name) : 0;
  direct_listen(address);
  return answer_with(message, question_end, RCODE_OK, address);
}

static void datagram_ready(struct source *source, uint32_t events) {
  (void)events;
  uint8_t message[QUESTION_MAX + 32];
  struct sockaddr_in from;
  for (int round = 0; round < 16; round++) {
    socklen_t size = sizeof from;
    ssize_t count = recvfrom(source->fd, message, QUESTION_MAX, 0, (struct sockaddr *)&from, &size);
    if (count < 0) return;
    size_t length = answer(message, (size_t)count);
    if (length > 0) sendto(source->fd, message, length, MSG_NOSIGNAL, (struct sockaddr *)&from, size);
  }
}

static void stream_close(struct stream *stream) {
  source_close(&stream->source);
  stream_count--;
  retire(&stream->source);
}

static void stream_ready(struct source *source, uint32_t events) {
  (void)events;
  struct stream *stream = container(source, struct stream, source);
  ssize_t count = read(source->fd, stream->data + stream->length, sizeof stream->data - stream->length);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return stream_close(stream);
  stream->length += (size_t)count;
  while (stream->length >= 2) {
    size_t length = (size_t)(stream->data[0] << 8 | stream->data[1]);
    if (length > QUESTION_MAX) return stream_close(stream);
    if (stream->length < 2 + length) return;
    uint8_t message[2 + QUESTION_MAX + 32];
    memcpy(message + 2, stream->data + 2, length);
    size_t answered = answer(message + 2, length);
    message[0] = (uint8_t)(answered >> 8);
    message[1] = (uint8_t)answered;
    if (answered == 0 || send(source->fd, message, 2 + answered, MSG_NOSIGNAL) != (ssize_t)(2 + answered)) return stream_close(stream);
    stream->length -= 2 + length;
    memmove(stream->data, stream->data + 2 + length, stream->length);
  }
}

static void streams_ready(struct source *source, uint32_t events) {
  (void)events;
  bool refused;
  int fd = accept_connection(source->fd, &refused);
  if (fd < 0 && !refused) return;
  struct stream *stream = refused || stream_count >= NAME_STREAMS_MAX ? NULL : calloc(1, sizeof *stream);
  if (stream != NULL) {
    stream_count++;
    stream->source = (struct source){.fd = fd, .ready = stream_ready};
    if (source_watch(&stream->source, EPOLLIN) != 0) stream_close(stream);
  } else if (fd >= 0) {
    close(fd);
  }
  if (refused) restore_spare();
}

static void listen_at(struct source *source, int type, void (*ready)(struct source *, uint32_t)) {
  const int on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(NAMES_NETWORK + 1)};
  *source = (struct source){.fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), .ready = ready};
  if (source->fd < 0) return;
  setsockopt(source->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  bool heard = bind(source->fd, (struct sockaddr *)&address, sizeof address) == 0 && (type == SOCK_DGRAM || listen(source->fd, 16) == 0);
  if (!heard || source_watch(source, EPOLLIN) != 0) source_close(source);
}

void names_listen(void) {
  if (plan->direct[0] == '\0' || plan->run < 0) return;
  listen_at(&datagrams, SOCK_DGRAM, datagram_ready);
  listen_at(&streams, SOCK_STREAM, streams_ready);
}
