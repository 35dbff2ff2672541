/* Output of a command that comes from process 1 of its sandbox itself: what comes from there can only be written to the streams. */
#include "front.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES (256u << 10)
#define PASSED_BYTES (16u << 10) /* of less, a copy is cheaper */

static char *buffer;
static size_t kept; /* of a header that has not come whole */
static bool is_pipe[3];

/* The server gets the output back, and sends it as before. */
static void give_back(struct session *session) {
  struct output told = {0};
  put(&told, "event", "untaken");
  send_to_server(session->server, EVENT, told.data, told.length);
  output_free(&told);
}

void begin_output(struct session *session, const char *path, const char *exec, const char *token) {
  struct output request = {0};
  put(&request, "v", "%d", PROTOCOL_VERSION);
  put(&request, "op", "take");
  put(&request, "exec", "%s", exec);
  put(&request, "token", "%s", token);
  if (buffer == NULL) buffer = malloc(BUFFER_BYTES);
  int fd = buffer == NULL ? -1 : connect_to(path);
  if (fd >= 0 && send_frame(fd, REQUEST, request.data, request.length) != 0) {
    close(fd);
    fd = -1;
  }
  output_free(&request);
  kept = 0;
  for (int stream = STDOUT_FILENO; stream <= STDERR_FILENO; stream++) {
    struct stat stat;
    is_pipe[stream] = fstat(stream, &stat) == 0 && S_ISFIFO(stat.st_mode);
    /* No more than a wish: users have a bound for all their pipes. */
    if (is_pipe[stream]) fcntl(stream, F_SETPIPE_SZ, BUFFER_BYTES);
  }
  session->reader = (struct reader){.fd = fd};
  if (fd < 0) give_back(session);
}

/* A refusal says that nothing was given: the server asks for it again. */
static void end(struct session *session) {
  bool refused = !session->reader.accepted;
  close(session->reader.fd);
  session->reader.fd = -1;
  if (refused) give_back(session);
}

/* Into a pipe, output goes without a copy, page by page. False: it has to be read. */
static bool pass_pages(struct session *session) {
  struct reader *reader = &session->reader;
  int fd = reader->part.kind == STDERR ? STDERR_FILENO : STDOUT_FILENO;
  if (reader->part.left < PASSED_BYTES || kept > 0 || !is_pipe[fd]) return false;
  ssize_t count = splice(reader->fd, NULL, fd, NULL, reader->part.left, SPLICE_F_MOVE);
  if (count > 0) reader->part.left -= (uint32_t)count;
  else if (count < 0 && errno != EINTR) is_pipe[fd] = false; /* what is wrong with it shows when it is written to */
  return count > 0 || (count < 0 && errno == EINTR);
}

/* Where pages can be passed, a read ends before the output of a frame begins. */
static size_t wanted(const struct session *session) {
  if (!is_pipe[STDOUT_FILENO] || session->reader.part.left > 0) return BUFFER_BYTES - kept;
  return kept < sizeof(struct header) ? sizeof(struct header) - kept : 1;
}

void read_output(struct session *session) {
  size_t left = session->reader.part.left;
  if (left > 0 && pass_pages(session)) return;
  size_t most = wanted(session);
  if (left > 0 && most > left) most = left;
  ssize_t count = read(session->reader.fd, buffer + kept, most);
  if (count < 0 && errno == EINTR) return;
  if (count <= 0) return end(session);
  size_t length = kept + (size_t)count, taken = take_output(session, buffer, length);
  if (taken == SIZE_MAX || session->reader.whole) return end(session);
  kept = length - taken;
  memmove(buffer, buffer + taken, kept);
}
