/* Fuzzes what the front does with bytes of a server and of process 1. Its acts are stood in for by ones that touch what they are given: linked with
   front/session.c, front/output.c and shared/frames.c alone. fuzz_front <seconds> [seed] */
#include "../front/front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static size_t shown, acts;

void show(struct session *session, uint8_t kind, const char *data, size_t length) {
  if ((!session->accepted && !session->reader.accepted) || (kind != STDOUT && kind != STDERR) || length == 0) abort();
  for (size_t at = 0; at < length; at++) shown += data[at] == 'q';
  acts++;
}
void set_raw(bool on) { acts += on; }
void set_signals(struct session *session, bool on) { acts += session->accepted && on; }
void set_input(struct session *session, bool on) { acts += session->accepted && on; }
void begin_output(struct session *session, const char *socket, const char *exec, const char *token) {
  if (!session->accepted) abort();
  acts += strlen(socket) + strlen(exec) + strlen(token) > 0;
  session->reader.fd = 9;
}
void more_input(size_t bytes) { if (bytes > FRAME_MAX) abort(); }

static const char *const words[] = {
    "ok=1", "node=1", "lost_stdout=", "lost_stderr=viv: lost\n", "lost_code=125", "lost_code=x", "raw=1", "raw=0", "signals=1", "stdin=1", "code=0", "code=-1",
    "code=", "event=taken", "event=", "bytes=5", "bytes=-5", "bytes=99999999999999999999", "=", "",
    "take=/x", "again=1", "again=0", "again_arg=try", "again_arg=", "exec=a", "token=b", "token=",
};

static size_t put_frame(uint8_t *at, uint8_t kind, const void *payload, size_t length) {
  struct header header = {.length = (uint32_t)length, .kind = kind};
  memcpy(at, &header, sizeof header);
  memcpy(at + sizeof header, payload, length);
  return sizeof header + length;
}

static size_t some_fields(char *at, bool accepts) {
  static const char begin[] = "ok=1\0lost_stdout=\0lost_stderr=x\0lost_code=125";
  size_t length = 0;
  if (accepts) memcpy(at, begin, length = sizeof begin);
  for (int count = rand() % 5; count > 0; count--) {
    const char *word = words[(size_t)rand() % (sizeof words / sizeof words[0])];
    memcpy(at + length, word, strlen(word) + 1);
    length += strlen(word) + 1;
  }
  return length;
}

/* As process 1 sends it: that it gives, output, the end. */
static size_t invent_output(uint8_t *data) {
  static const uint8_t kinds[] = {STDOUT, STDERR, STDOUT, STDERR, END, REPLY, EXIT, 0};
  char payload[4096];
  memset(payload, 'q', sizeof payload);
  size_t size = put_frame(data, REPLY, rand() % 8 == 0 ? "ok=0" : "ok=1", 5);
  for (int count = rand() % 8; count > 0; count--) size += put_frame(data + size, kinds[(size_t)rand() % sizeof kinds], payload, (size_t)rand() % (rand() % 2 == 0 ? 3 : sizeof payload));
  size += put_frame(data + size, END, payload, 0);
  for (int count = rand() % 3; count > 0; count--) data[(size_t)rand() % size] = (uint8_t)rand();
  return rand() % 4 == 0 ? (size_t)rand() % size : size;
}

/* Well-formed at first, then a few bytes are not. */
static size_t invent(uint8_t *data) {
  static const uint8_t kinds[] = {REPLY, STDOUT, STDERR, EXIT, EVENT, ERROR, 0, 255};
  char payload[4096];
  size_t size = put_frame(data, REPLY, payload, some_fields(payload, rand() % 4 != 0));
  for (int count = rand() % 6; count > 0; count--) {
    uint8_t kind = kinds[(size_t)rand() % sizeof kinds];
    bool is_output = kind == STDOUT || kind == STDERR;
    memset(payload, 'q', sizeof payload);
    size += put_frame(data + size, kind, payload, is_output ? (size_t)rand() % sizeof payload : some_fields(payload, false));
  }
  for (int count = rand() % 4; count > 0; count--) data[(size_t)rand() % size] = (uint8_t)rand();
  return rand() % 4 == 0 ? (size_t)rand() % size : size;
}

/* As converse() does, in pieces of every size; the copy ends where the sanitizer looks. */
static void feed(const uint8_t *data, size_t size, size_t (*take)(struct session *session, const char *data, size_t length)) {
  struct session session = {.exit_code = -1, .reader.fd = -1};
  char *kept = NULL;
  size_t length = 0;
  for (size_t at = 0, piece = 1; at < size; at += piece, piece = piece * 7 % 8191 + 1) {
    if (piece > size - at) piece = size - at;
    char *grown = malloc(length + piece);
    if (length > 0) memcpy(grown, kept, length);
    memcpy(grown + length, data + at, piece);
    free(kept);
    kept = grown;
    length += piece;
    size_t taken = take(&session, kept, length);
    if (taken == SIZE_MAX || session.reader.whole || session.for_node || session.exit_code >= 0) break;
    if (taken > length) abort();
    length -= taken;
    memmove(kept, kept + taken, length);
  }
  free(kept);
  session_free(&session);
}

int main(int argc, char **argv) {
  static uint8_t data[1 << 16];
  time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
  srand(argc > 2 ? (unsigned)atoi(argv[2]) : 1);
  size_t runs = 0;
  for (; time(NULL) < end; runs++) {
    feed(data, invent(data), take_frames);
    feed(data, invent_output(data), take_output);
  }
  printf("runs=%zu acts=%zu shown=%zu\n", runs, acts, shown);
  return 0;
}
