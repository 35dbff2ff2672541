/* Fuzzes what the mover reads from its channel. The acts behind it are stood in for by ones that touch nothing: linked with
   mover/channel.c and mover/request.c alone, where `exit` is fuzz_exit: fuzz <seconds> [seed] */
#include "../mover/parts.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; } /* a run that is broken off leaves what it held */

void fuzz_exit(int code) __attribute__((noreturn));

static jmp_buf ended;
static size_t acts;

void fuzz_exit(int code) { longjmp(ended, code + 1); }

int mover_watch(struct source *source, uint32_t events) { return (void)source, (void)events, 0; }
void doors_resume(void) {}
void door_open(uint32_t id, const char *path) {
  (void)id;
  if (path[0] != '/' || strlen(path) >= 256) abort();
  acts++;
}
void door_shut(uint32_t id) { acts += id > 0; }
void connection_join(uint64_t id, int outside, int64_t idle_ms) {
  (void)id;
  if (idle_ms < 0) abort();
  if (outside >= 0) close(outside);
  acts++;
}
void connection_body(uint64_t id, int outside, uint64_t count, int64_t idle_ms) {
  if (count == 0) abort();
  connection_join(id, outside, idle_ms);
}
void connection_hold(uint64_t number, int fd) {
  (void)number;
  if (fd >= 0) close(fd);
  acts++;
}
void connection_cut(uint64_t id) { acts += id > 0; }
void connection_drop(uint64_t id) { acts += id > 0; }

/* Bytes and text are looked at to their end, where the sanitizer watches. */
static void look(const void *data, size_t length) {
  const uint8_t *bytes = data;
  for (size_t at = 0; at < length; at++) acts += bytes[at] == 0xfe;
}
void exchange_fetch(uint64_t id, const struct exchange_request *request) {
  (void)id;
  if (request->port == 0 || request->length == 0 || request->within_ms < 0 || request->idle_ms < 0 || strlen(request->address) >= 64) abort();
  if (request->keep_ms < 0 || request->tail_length > 256) abort();
  look(request->data, request->length);
  look(request->tail, request->tail_length);
  acts++;
}
void exchange_reply(uint64_t id, const struct exchange_reply *reply) {
  (void)id;
  if (reply->length == 0 || reply->keep_ms < 0) abort();
  look(reply->data, reply->length);
  acts++;
}
void exchange_go(uint64_t id) { acts += id > 0; }
void exchange_more(uint64_t id) { acts += id > 0; }
void exchange_give(uint64_t id) { acts += id > 0; }
void tunnel_carry(uint64_t id) { acts += id > 0; }

static const char *const messages[] = {
    "door 1 2f746d70", "door 1 2f00", "door 1 2f7", "door 99999999999 2f", "shut 1", "join 5 900000", "join 5", "join -1 5", "body 5 900000 100", "body 5 1 0",
    "body 5 1 99999999999999999999999", "hold 3", "hold 3 4", "hold", "cut 7", "drop 7", "drop x", "moved", "", "joinjoinjoin 1 2",
    "fetch 5 127.0.0.2 80 15000 900000 0 474554", "fetch 5 ::1 80 1 1 1 fe", "fetch 5 127.0.0.2 0 1 1 1 fe", "fetch 5 127.0.0.2 65536 1 1 1 fe", "fetch 5 80 1 1 1 fe",
    "fetch 5 127.0.0.2 80 1 1 1 ", "fetch 5 127.0.0.2 80 1 1 1 f", "fetch 5 127.0.0.2 80 1 1 1 fe fefe", "fetch 5 127.0.0.2 80 1 1 1 fe fe fe", "fetch 5 127.0.0.2 80 1 1 1 fe ", "fetch 5  80 1 1 1 fe", "reply 5 15000 100 fefe", "reply 5 0 0 fe", "reply 5 1 fe", "reply 5 0 0 ",
    "stream 5 fe", "stream 5", "stream 5 zz", "more 5", "go 5", "go", "more 5 6", "give 5", "give 5 6",
    "open 5 127.0.0.2 443 15000 900000 15000 485454", "open 5 127.0.0.2 443 1 1 1 fe fe", "open 5 127.0.0.2 443 1 1 1", "carry 5", "carry", "carry 5 6",
};

/* Whole lines at first; then a few bytes are not. */
static size_t invent(char *data) {
  size_t size = 0;
  for (int count = 1 + rand() % 4; count > 0; count--) {
    const char *message = messages[(size_t)rand() % (sizeof messages / sizeof messages[0])];
    bool with = rand() % 2 == 0;
    size += (size_t)sprintf(data + size, with ? "{\"cmd\":\"NODE_HANDLE\",\"type\":\"net.Socket\",\"msg\":\"%s\"}\n" : "\"%s\"\n", message);
    if (with && rand() % 3 != 0) channel_take_descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (rand() % 8 == 0) size += (size_t)sprintf(data + size, "{\"cmd\":\"NODE_HANDLE_ACK\"}\n");
  }
  for (int count = rand() % 3; count > 0; count--) data[(size_t)rand() % size] = (char)rand();
  return size;
}

int main(int argc, char **argv) {
  static char data[1 << 14], drained[1 << 16];
  static size_t runs;
  int ends[2];
  time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
  srand(argc > 2 ? (unsigned)atoi(argv[2]) : 1);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) return 1;
  channel_open(ends[0]);
  for (; time(NULL) < end; runs++) {
    if (setjmp(ended) == 0) {
      size_t size = invent(data);
      char *exact = malloc(size); /* its end is where the sanitizer looks */
      memcpy(exact, data, size);
      channel_take(exact, size);
      free(exact);
    } else if (setjmp(ended) == 0) {
      channel_take("\n", 1); /* what was left of a line that ended it */
    }
    while (read(ends[1], drained, sizeof drained) > 0) continue;
  }
  printf("runs=%zu acts=%zu\n", runs, acts);
  return acts > 0 ? 0 : 1;
}
