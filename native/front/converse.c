/* A command line that the server carries out: what it writes goes to this process's streams. */
#include "front.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* Of more than one frame, so that the kernel is asked seldom. */
#define BUFFER_BYTES (256u << 10)

static struct termios before;
static bool is_raw;

/* The same modes as Node's, which are those that libuv calls raw. */
void set_raw(bool on) {
  if (on == is_raw) return;
  if (!on) {
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    is_raw = false;
    return;
  }
  if (tcgetattr(STDIN_FILENO, &before) != 0) return;
  struct termios raw = before;
  raw.c_iflag &= (tcflag_t) ~(BRKINT | ICRNL | INPCK | ISTRIP | IXON);
  raw.c_oflag |= ONLCR;
  raw.c_cflag |= CS8;
  raw.c_lflag &= (tcflag_t) ~(ECHO | ICANON | IEXTEN | ISIG);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  is_raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

/* Others that share the stream may have made it non-blocking. */
static int write_patiently(int fd, const char *data, size_t length) {
  while (length > 0) {
    ssize_t written = write(fd, data, length);
    if (written < 0 && errno == EAGAIN) {
      poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
      continue;
    }
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return -1;
    data += written;
    length -= (size_t)written;
  }
  return 0;
}

/* Such as a full disk. */
static void __attribute__((noreturn)) fail(int fd) {
  int error = errno;
  set_raw(false);
  if (fd != STDERR_FILENO) fprintf(stderr, "viv: standard output can't be written: %s.\n", strerror(error));
  exit(1);
}

/* The server decides what a reader that is gone means for the command line. */
void show(struct session *session, uint8_t kind, const char *data, size_t length) {
  static bool closed[3];
  int fd = kind == STDERR ? STDERR_FILENO : STDOUT_FILENO;
  if (closed[fd] || write_patiently(fd, data, length) == 0) return;
  if (errno != EPIPE) fail(fd);
  closed[fd] = true;
  struct output told = {0};
  put(&told, "code", "closed");
  put(&told, "step", "%s", fd == STDERR_FILENO ? "stderr" : "stdout");
  send_to_server(session->server, ERROR, told.data, told.length);
  output_free(&told);
}

static int leave(struct session *session, int code) {
  end_input_thread();
  set_raw(false);
  session_free(session);
  return code;
}

/* Output that is on its way from process 1 comes before the end. It is lost if process 1 was, of which a code that is not 0 tells. */
static bool has_all_output(struct session *session) {
  while (session->reader.fd >= 0) read_output(session);
  return session->exit_code != 0 || !session->reader.accepted || session->reader.whole;
}

/* Shows output from process 1 while the server says nothing. */
static bool hears_server(struct session *session) {
  struct pollfd ready[] = {{.fd = session->server, .events = POLLIN}, {.fd = session->reader.fd, .events = POLLIN}};
  if (poll(ready, 2, -1) < 0) return false;
  if (ready[1].revents != 0) read_output(session);
  return ready[0].revents != 0;
}

/* Node goes on with other words. Signals that the server would have got are its own again. */
static int go_on(struct session *session, struct line *line) {
  size_t count = 0;
  while (session->again[count] != NULL) count++;
  char **words = calloc(count + 3, sizeof *words);
  if (words == NULL) return leave(session, session->lost_code);
  words[0] = line->node_words[0];
  words[1] = line->node_words[1];
  memcpy(words + 2, session->again, count * sizeof *words);
  line->node_words = words;
  set_signals(session, false);
  session->again = NULL; /* Node has the words now */
  return leave(session, -1);
}

int converse(int server, struct line *line) {
  struct session session = {.server = server, .exit_code = -1, .reader.fd = -1};
  char *data = malloc(BUFFER_BYTES);
  size_t length = 0;
  if (data == NULL) return -1;
  for (;;) {
    size_t taken = take_frames(&session, data, length);
    if (session.for_node) return leave(&session, -1);
    if (session.exit_code >= 0 && has_all_output(&session)) return leave(&session, session.exit_code);
    if (session.exit_code >= 0 || taken == SIZE_MAX) break;
    length -= taken;
    memmove(data, data + taken, length);
    if (session.reader.fd >= 0 && !hears_server(&session)) continue;
    ssize_t count = read(server, data + length, BUFFER_BYTES - length);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    length += (size_t)count;
  }
  /* A server that had not said yet that it takes the command line has done nothing. */
  if (!session.accepted) return leave(&session, -1);
  set_raw(false);
  if (session.again != NULL) return go_on(&session, line);
  for (int fd = 1; fd <= 2; fd++)
    if (session.lost[fd] != NULL) write_patiently(fd, session.lost[fd], strlen(session.lost[fd]));
  return leave(&session, session.lost_code);
}
