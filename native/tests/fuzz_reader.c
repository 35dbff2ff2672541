/* Compares what the front shows of output from process 1, into pipes and files, with what a plain reader of the frames finds. Linked with
   front/reader.c, front/output.c, front/stream.c and shared/frames.c alone. fuzz_reader <seconds> [seed] */
#include "../front/front.h"
#include "invent.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPORT 3
#define MOST (96u << 10) /* what a pipe and a socket hold without a reader */

struct shown {
  char data[2][MOST];
  size_t length[2];
};

static int cell;
static size_t given_back, wholes, passed;

void show(struct session *session, uint8_t kind, const char *data, size_t length) {
  if (!session->reader.accepted || length == 0) abort();
  if (write_all(kind == STDERR ? STDERR_FILENO : STDOUT_FILENO, data, length) != 0) abort();
}
int connect_to(const char *path) { return path[0] == '/' ? cell : -1; }
int send_to_server(int server, uint8_t kind, const void *payload, size_t length) {
  if (server != 7 || kind != EVENT || length == 0 || strcmp(payload, "event=untaken") != 0) abort();
  given_back++;
  return 0;
}

/* What has to be shown, by the words of the protocol. True: it came to its end. */
static bool expected(const char *data, size_t size, struct shown *shown, bool *accepted) {
  struct header header;
  memset(shown->length, 0, sizeof shown->length);
  *accepted = false;
  for (size_t at = 0; size - at >= sizeof header; at += header.length) {
    memcpy(&header, data + at, sizeof header);
    at += sizeof header;
    if (header.reserved[0] || header.reserved[1] || header.reserved[2]) return false;
    if (!*accepted) {
      *accepted = header.kind == REPLY && header.length == 5 && size - at >= 5 && memcmp(data + at, "ok=1", 5) == 0;
      if (!*accepted) return false;
      continue;
    }
    if (header.kind == END) return header.length == 0;
    if ((header.kind != STDOUT && header.kind != STDERR) || header.length > FRAME_MAX) return false;
    size_t stream = header.kind == STDERR, there = size - at < header.length ? size - at : header.length;
    memcpy(shown->data[stream] + shown->length[stream], data + at, there);
    shown->length[stream] += there;
    if (there < header.length) return false;
  }
  return false;
}

static size_t invent(char *data) {
  size_t size = put_frame(data, REPLY, once_in(16) ? "ok=0" : "ok=1", 5);
  for (size_t count = below(12); count > 0; count--) {
    size_t length = below(once_in(3) ? 40000 : 20), kind = once_in(3) ? STDERR : STDOUT;
    if (size + 2 * sizeof(struct header) + length > MOST) break;
    passed += length >= 16384;
    for (size_t at = 0; at < length; at++) data[size + sizeof(struct header) + at] = (char)(size + at * 7);
    struct header header = {.length = (uint32_t)length, .kind = (uint8_t)kind};
    memcpy(data + size, &header, sizeof header);
    size += sizeof header + length;
  }
  size += put_frame(data + size, END, NULL, 0);
  return once_in(2) ? size : spoil(data, size);
}

/* A stream to be read by this process later: of a pipe, or of a file. */
static int stand_in(int fd) {
  int ends[2];
  if (once_in(2)) {
    ends[0] = memfd_create("stream", 0);
    if (dup2(ends[0], fd) != fd) abort();
    return ends[0];
  }
  if (pipe(ends) != 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 || dup2(ends[1], fd) != fd) abort();
  fcntl(ends[1], F_SETPIPE_SZ, 2 * MOST);
  close(ends[1]);
  return ends[0];
}

static void compare(int stream, const char *data, size_t length) {
  static char found[2 * MOST];
  size_t size = 0;
  lseek(stream, 0, SEEK_SET);
  for (ssize_t count; (count = read(stream, found + size, sizeof found - size)) > 0;) size += (size_t)count;
  if (size != length || memcmp(found, data, length) != 0) abort();
}

/* In pieces, as a slow process 1 writes it. */
static void feed(int to, struct session *session, const char *data, size_t size) {
  for (size_t at = 0, piece; at < size && session->reader.fd >= 0; at += piece) {
    piece = 1 + below(once_in(2) ? 30 : MOST);
    if (piece > size - at) piece = size - at;
    if (write_all(to, data + at, piece) != 0) abort();
    if (once_in(2)) read_output(session);
  }
  shutdown(to, SHUT_WR);
  while (session->reader.fd >= 0) read_output(session);
}

static void run(void) {
  static char data[MOST + 64];
  static struct shown shown;
  bool accepted;
  int ends[2], out = stand_in(STDOUT_FILENO), err = stand_in(STDERR_FILENO);
  size_t size = invent(data), before = given_back;
  bool whole = expected(data, size, &shown, &accepted);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) abort();
  cell = ends[0];
  struct session session = {.server = 7, .exit_code = -1, .reader.fd = -1};
  begin_output(&session, "/socket", "a", "b");
  feed(ends[1], &session, data, size);
  if (session.reader.whole != whole || session.reader.accepted != accepted || given_back - before != !accepted) abort();
  compare(out, shown.data[0], shown.length[0]);
  compare(err, shown.data[1], shown.length[1]);
  wholes += whole;
  close(ends[1]);
  close(out);
  close(err);
}

int main(int argc, char **argv) {
  time_t end = fuzz_begin(argc, argv);
  size_t runs = 0;
  if (dup2(STDOUT_FILENO, REPORT) != REPORT) return 2;
  for (; time(NULL) < end; runs++) run();
  dprintf(REPORT, "runs=%zu acts=%zu passed=%zu\n", runs, wholes, passed);
  return 0;
}
