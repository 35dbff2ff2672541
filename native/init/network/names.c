/* Names for programs that know no proxy. A name that the server takes for one gets an address of 198.18.0.0/15, which a
   route makes this machine's own: what a program then dials is told to the proxy by its name. */
#include "network.h"

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

enum { TYPE_A = 1, TYPE_ANY = 255, CLASS_IN = 1, RCODE_OK = 0, RCODE_FORMAT = 1, RCODE_FAILED = 2, RCODE_NO_NAME = 3, RCODE_REFUSED = 5 };

struct stream {
  struct source source;
  struct question *question; /* the one that waits for its answer; the next one is read after it */
  size_t length;
  uint8_t data[2 + QUESTION_MAX];
};

/* One name that a program inside asks for. */
struct question {
  struct stream *stream;   /* NULL: a datagram */
  bool gone;               /* the program that asked is gone */
  struct sockaddr_in from;
  char name[256];
  int type, class;
  size_t end;              /* of the question, in the message */
  uint8_t message[2 + QUESTION_MAX + 32]; /* the length of a stream's comes first */
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
  gethostname(own, sizeof own - 1);
  return strcmp(name, "localhost") == 0 || strcasecmp(name, own) == 0;
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

static size_t answer_told(struct question *question, char told) {
  uint8_t *message = question->message + 2;
  if (told == NAME_MISSING) return answer_with(message, question->end, RCODE_NO_NAME, 0);
  if (told != NAME_EXISTS) return answer_with(message, question->end, RCODE_FAILED, 0);
  bool wanted = question->class == CLASS_IN && (question->type == TYPE_A || question->type == TYPE_ANY);
  uint32_t address = wanted ? address_of(question->name) : 0;
  direct_listen(address);
  return answer_with(message, question->end, RCODE_OK, address);
}

/* Turns what can be answered at once into its answer, in place. 0: not worth one, or `ask` is set. */
static size_t answer_at_once(struct question *question, size_t length, bool *ask) {
  uint8_t *message = question->message + 2;
  char *name = question->name;
  *ask = false;
  if (length < HEADER || (message[2] & 0x80) != 0) return 0;
  bool one = (message[2] & 0x78) == 0 && message[4] == 0 && message[5] == 1;
  const uint8_t *end = message + length, *after = one ? read_name(message + HEADER, end, name) : NULL;
  if (after == NULL || end - after < 4) return answer_with(message, HEADER, RCODE_FORMAT, 0);
  question->end = (size_t)(after + 4 - message);
  question->type = after[0] << 8 | after[1];
  question->class = after[2] << 8 | after[3];
  if (name[0] == '\0') return answer_with(message, question->end, RCODE_NO_NAME, 0);
  if (is_local(name)) return answer_with(message, question->end, RCODE_OK, question->type == TYPE_A ? INADDR_LOOPBACK : 0);
  if (!direct_allowed()) return answer_with(message, question->end, RCODE_REFUSED, 0);
  *ask = true;
  return 0;
}

static void send_datagram(const struct question *question, size_t length) {
  sendto(datagrams.fd, question->message + 2, length, MSG_NOSIGNAL, (const struct sockaddr *)&question->from, sizeof question->from);
}

static void datagram_told(void *context, char told) {
  struct question *question = context;
  send_datagram(question, answer_told(question, told));
  free(question);
  source_watch(&datagrams, EPOLLIN);
}

static void datagram_ready(struct source *source, uint32_t events) {
  (void)events;
  for (int round = 0; round < 16; round++) {
    if (!ask_room()) return (void)source_watch(source, 0); /* until one of those under way is answered */
    struct question question = {0};
    socklen_t size = sizeof question.from;
    ssize_t count = recvfrom(source->fd, question.message + 2, QUESTION_MAX, 0, (struct sockaddr *)&question.from, &size);
    if (count < 0) return;
    bool ask;
    size_t length = answer_at_once(&question, (size_t)count, &ask);
    if (length > 0) send_datagram(&question, length);
    struct question *kept = ask ? malloc(sizeof *kept) : NULL;
    if (kept == NULL) continue;
    *kept = question;
    ask_name(kept->name, datagram_told, kept);
  }
}

static void stream_close(struct stream *stream) {
  if (stream->question != NULL) stream->question->gone = true;
  source_close(&stream->source);
  stream_count--;
  retire(&stream->source);
}

static bool send_to_stream(struct stream *stream, struct question *question, size_t length) {
  question->message[0] = (uint8_t)(length >> 8);
  question->message[1] = (uint8_t)length;
  return length > 0 && send(stream->source.fd, question->message, 2 + length, MSG_NOSIGNAL) == (ssize_t)(2 + length);
}

static void stream_take(struct stream *stream);

static void stream_told(void *context, char told) {
  struct question *question = context;
  struct stream *stream = question->stream;
  bool sent = !question->gone && send_to_stream(stream, question, answer_told(question, told));
  if (!question->gone) {
    stream->question = NULL;
    if (sent) stream_take(stream);
    else stream_close(stream);
  }
  free(question);
  source_watch(&datagrams, EPOLLIN); /* they may have waited for room */
}

/* The complete questions of what was read, until one has to wait. */
static void stream_take(struct stream *stream) {
  while (stream->question == NULL && stream->length >= 2) {
    size_t length = (size_t)(stream->data[0] << 8 | stream->data[1]);
    if (length > QUESTION_MAX) return stream_close(stream);
    if (stream->length < 2 + length) break;
    struct question *question = calloc(1, sizeof *question);
    if (question == NULL) return stream_close(stream);
    memcpy(question->message + 2, stream->data + 2, length);
    stream->length -= 2 + length;
    memmove(stream->data, stream->data + 2 + length, stream->length);
    bool ask;
    size_t answered = answer_at_once(question, length, &ask);
    if (ask && !ask_crowded() && source_idle(&stream->source) == 0) {
      question->stream = stream;
      stream->question = question;
      return ask_name(question->name, stream_told, question);
    }
    bool sent = !ask && send_to_stream(stream, question, answered);
    free(question);
    if (!sent) return stream_close(stream);
  }
  if (stream->question == NULL && source_watch(&stream->source, EPOLLIN) != 0) stream_close(stream);
}

static void stream_ready(struct source *source, uint32_t events) {
  (void)events;
  struct stream *stream = container(source, struct stream, source);
  if (stream->question != NULL) return stream_close(stream); /* who asked is gone */
  ssize_t count = read(source->fd, stream->data + stream->length, sizeof stream->data - stream->length);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return stream_close(stream);
  stream->length += (size_t)count;
  stream_take(stream);
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
