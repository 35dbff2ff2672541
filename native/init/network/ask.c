/* Whether a name exists is for the server to say, which knows the rules and the world outside. It is asked by the socket
   that connections from inside take. */
#include "network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct ask {
  struct source source;
  void (*told)(void *context, char answer);
  void *context;
};

static size_t ask_count;

bool ask_room(void) { return ask_count < NAME_ASKS_MAX; }

/* Questions of streams that are gone count until they are answered, so a program that opens and leaves many is stopped here. */
bool ask_crowded(void) { return ask_count >= 4 * NAME_ASKS_MAX; }

static void ask_end(struct ask *ask, char answer) {
  source_close(&ask->source);
  ask_count--;
  ask->told(ask->context, answer);
  retire(&ask->source);
}

static void ask_ready(struct source *source, uint32_t events) {
  (void)events;
  char answer;
  ssize_t count = read(source->fd, &answer, 1);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  ask_end(container(source, struct ask, source), count == 1 ? answer : NAME_UNKNOWN);
}

void ask_name(const char *name, void (*told)(void *context, char answer), void *context) {
  char line[300];
  int length = snprintf(line, sizeof line, "\x03%s\n", name), fd = dial_outside(plan->direct);
  struct ask *ask = fd < 0 || send(fd, line, (size_t)length, MSG_NOSIGNAL) != length ? NULL : calloc(1, sizeof *ask);
  if (ask == NULL) {
    if (fd >= 0) close(fd);
    return told(context, NAME_UNKNOWN);
  }
  *ask = (struct ask){.source = {.fd = fd, .ready = ask_ready}, .told = told, .context = context};
  ask_count++;
  if (source_watch(&ask->source, EPOLLIN) != 0) ask_end(ask, NAME_UNKNOWN);
}
