/* Output of a command that comes from process 1 of its sandbox itself: what comes from there can only be written to the streams. */
#include "front.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES (256u << 10)

static char *buffer;
static size_t kept; /* of a header that has not come whole */

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

void read_output(struct session *session) {
  ssize_t count = read(session->reader.fd, buffer + kept, BUFFER_BYTES - kept);
  if (count < 0 && errno == EINTR) return;
  if (count <= 0) return end(session);
  size_t length = kept + (size_t)count, taken = take_output(session, buffer, length);
  if (taken == SIZE_MAX || session->reader.whole) return end(session);
  kept = length - taken;
  memmove(buffer, buffer + taken, kept);
}
