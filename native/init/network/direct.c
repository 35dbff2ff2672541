/* Connections of programs that know no proxy: a program that dials an address that stands for a name is led to the proxy,
   which is told name and port. Process 1 listens only on addresses of names that were asked for, so that ports of loopback stay
   free for the services inside. */
#include "network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* In the order they came; the oldest makes room. */
static struct direct {
  struct source source;
  uint32_t address;
  uint16_t port;
} listeners[DIRECT_LISTENERS_MAX];
static size_t listener_next;

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
    const char *name = refused ? NULL : name_of(direct->address);
    char preface[300];
    int length = name == NULL ? 0 : snprintf(preface, sizeof preface, "\x02%s:%u\n", name, direct->port);
    if (length == 0) turn_away(inside);
    else hand_over(inside, preface, (size_t)length);
    if (refused) return restore_spare();
  }
}

static void listen_on(uint32_t address, uint16_t port) {
  const int on = 1;
  for (size_t at = 0; at < DIRECT_LISTENERS_MAX; at++)
    if (listeners[at].address == address && listeners[at].port == port) return;
  struct direct *direct = &listeners[listener_next];
  if (direct->address != 0) source_close(&direct->source);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
  *direct = (struct direct){.source = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), .ready = direct_ready}};
  if (direct->source.fd < 0) return;
  setsockopt(direct->source.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  bool heard = bind(direct->source.fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(direct->source.fd, 64) == 0;
  /* A service inside that listens on every address has the port; it is tried again with the next question. */
  if (!heard || source_watch(&direct->source, EPOLLIN) != 0) return source_close(&direct->source);
  direct->address = address;
  direct->port = port;
  listener_next = (listener_next + 1) % DIRECT_LISTENERS_MAX;
}

/* The server keeps the open ports in a file beside the sockets; without it there is no network. */
static bool read_ports(char *text, size_t size) {
  int fd = openat(plan->run, DIRECT_PORTS_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  ssize_t length = read(fd, text, size - 1);
  close(fd);
  text[length > 0 ? length : 0] = '\0';
  return length > 0;
}

bool direct_allowed(void) {
  char text[1024];
  return read_ports(text, sizeof text);
}

void direct_listen(uint32_t address) {
  char text[1024], *rest = text;
  if (address == 0 || !read_ports(text, sizeof text)) return;
  for (char *word; (word = strtok_r(rest, " \n", &rest)) != NULL;) {
    long port = strtol(word, NULL, 10);
    if (port > 0 && port < 65536) listen_on(address, (uint16_t)port);
  }
}
