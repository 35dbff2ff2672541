/* Connections of programs that know no proxy: whoever dials an address that stands for a name is led to the proxy, which
   is told name and port. Nothing listens before the first name was asked for, so that services inside find their ports free. */
#include "init.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct direct {
  struct source source;
  uint16_t port;
} listeners[DIRECT_PORTS_MAX];
static size_t listener_count;

static void turn_away(int fd) {
  struct linger linger = {.l_onoff = 1};
  if (fd < 0) return;
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
  close(fd);
}

static void direct_ready(struct source *source, uint32_t events) {
  (void)events;
  const struct direct *direct = container(source, struct direct, source);
  for (int round = 0; round < 16; round++) {
    bool refused;
    int inside = accept_connection(source->fd, &refused);
    if (inside < 0 && !refused) return;
    struct sockaddr_in dialled = {0};
    socklen_t size = sizeof dialled;
    bool known = !refused && getsockname(inside, (struct sockaddr *)&dialled, &size) == 0;
    const char *name = known ? name_of(ntohl(dialled.sin_addr.s_addr)) : NULL;
    char preface[300];
    int length = name == NULL ? 0 : snprintf(preface, sizeof preface, "\x02%s:%u\n", name, direct->port);
    if (length == 0) turn_away(inside);
    else forward_start(inside, plan->direct, preface, (size_t)length);
    if (refused) return restore_spare();
  }
}

static void listen_on(uint16_t port) {
  const int on = 1;
  for (size_t at = 0; at < listener_count; at++)
    if (listeners[at].port == port) return;
  if (listener_count == DIRECT_PORTS_MAX) return;
  struct direct *direct = &listeners[listener_count];
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  *direct = (struct direct){.source = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), .ready = direct_ready}, .port = port};
  if (direct->source.fd < 0) return;
  setsockopt(direct->source.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  bool heard = bind(direct->source.fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(direct->source.fd, 64) == 0;
  /* Taken by a service inside: the port is its own, and asked for again with the next name. */
  if (!heard || source_watch(&direct->source, EPOLLIN) != 0) source_close(&direct->source);
  else listener_count++;
}

/* The server keeps the open ports in a file beside the sockets; without it there is no network. */
bool direct_listen(void) {
  char text[1024], *rest = text;
  int fd = openat(plan->run, DIRECT_PORTS_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return false;
  text[length] = '\0';
  for (char *word; (word = strtok_r(rest, " \n", &rest)) != NULL;) {
    long port = strtol(word, NULL, 10);
    if (port > 0 && port < 65536) listen_on((uint16_t)port);
  }
  return true;
}
