/* Raw bytes between two sockets: dialled ports inside, and forwarded ports to the outside. */
#include "network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PROXIED "\x01" /* goes with the descriptor of a program that knows the proxy */

/* One direction is what was read from a side and waits for the other, at most one chunk. */
struct pump {
  struct source left, right;
  struct queue to_right, to_left;
  bool left_ended, right_ended;   /* sends no more */
  bool left_shut, right_shut;     /* has been told so */
  bool connecting;                /* right is not there yet */
  bool dialled;
};

struct forward {
  struct source source;
  const char *name;
};

static size_t pumps_dialled, pumps_forwarded;
static struct forward forwards[2 * sizeof((struct init_plan *)0)->forwards / sizeof((struct init_plan *)0)->forwards[0]];

static void reset_on_close(int fd) {
  struct linger linger = {.l_onoff = 1};
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

static void pump_close(struct pump *pump, bool broken) {
  if (broken) {
    reset_on_close(pump->left.fd);
    reset_on_close(pump->right.fd);
  }
  source_close(&pump->left);
  source_close(&pump->right);
  queue_free(&pump->to_left);
  queue_free(&pump->to_right);
  if (pump->dialled) pumps_dialled--;
  else pumps_forwarded--;
  retire(&pump->left);
}

static int pump_watch(struct pump *pump) {
  uint32_t left = 0, right = 0;
  if (!pump->left_ended && pump->to_right.length == 0) left |= EPOLLIN;
  if (pump->to_left.length > 0) left |= EPOLLOUT;
  if (!pump->right_ended && pump->to_left.length == 0) right |= EPOLLIN;
  if (pump->to_right.length > 0) right |= EPOLLOUT;
  return source_watch(&pump->left, left) | source_watch(&pump->right, right);
}

/* Moves what can be moved from one side to the other. False: the connection is broken. */
static bool move(struct source *from, struct source *to, struct queue *queue, bool *ended, bool *shut) {
  static char buffer[PUMP_MAX];
  if (queue->length > 0 && queue_write(queue, to->fd) < 0) return false;
  if (queue->length == 0 && !*ended) {
    ssize_t count = read(from->fd, buffer, sizeof buffer);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (count == 0) *ended = true;
    if (count > 0) {
      ssize_t written = send(to->fd, buffer, (size_t)count, MSG_NOSIGNAL);
      if (written < 0 && errno != EAGAIN && errno != EINTR) return false;
      size_t done = written > 0 ? (size_t)written : 0;
      if (!queue_append(queue, buffer + done, (size_t)count - done, PUMP_MAX)) return false;
    }
  }
  if (*ended && queue->length == 0 && !*shut) {
    *shut = true;
    shutdown(to->fd, SHUT_WR);
  }
  return true;
}

static void pump_move(struct pump *pump) {
  bool whole = move(&pump->left, &pump->right, &pump->to_right, &pump->left_ended, &pump->right_shut) &&
               move(&pump->right, &pump->left, &pump->to_left, &pump->right_ended, &pump->left_shut) && pump_watch(pump) == 0;
  if (!whole) pump_close(pump, true);
  else if (pump->left_shut && pump->right_shut) pump_close(pump, false);
}

static void pump_left_ready(struct source *source, uint32_t events) {
  struct pump *pump = container(source, struct pump, left);
  if (pump->connecting) {
    if (events & (EPOLLHUP | EPOLLERR)) pump_close(pump, true); /* who asked is gone */
    return;
  }
  pump_move(pump);
}

static void refuse_dial(struct pump *pump, int error) {
  send_error(pump->left.fd, NULL, error == ECONNREFUSED ? "not-found" : code_of_errno(error), error, "dial",
             error == ECONNREFUSED ? "nothing listens there" : NULL);
  pump_close(pump, false);
}

static void connected(struct pump *pump) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(pump->right.fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return refuse_dial(pump, error);
  pump->connecting = false;
  int on = 1; /* refused by a Unix socket, which needs none of it */
  setsockopt(pump->right.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (send_frame(pump->left.fd, REPLY, "ok=1", 5) != 0) return pump_close(pump, true);
  pump_move(pump);
}

static void pump_right_ready(struct source *source, uint32_t events) {
  (void)events;
  struct pump *pump = container(source, struct pump, right);
  if (pump->connecting) connected(pump);
  else pump_move(pump);
}

static struct pump *pump_make(int left, int right, bool dialled) {
  struct pump *pump = calloc(1, sizeof *pump);
  if (pump == NULL) return NULL;
  pump->left = (struct source){.fd = left, .ready = pump_left_ready};
  pump->right = (struct source){.fd = right, .ready = pump_right_ready};
  pump->dialled = dialled;
  if (dialled) pumps_dialled++;
  else pumps_forwarded++;
  return pump;
}

struct target {
  struct sockaddr_storage address;
  socklen_t length;
};

static struct target loopback(uint16_t port, bool six) {
  struct target target = {.length = six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)};
  if (six) *(struct sockaddr_in6 *)&target.address = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  else *(struct sockaddr_in *)&target.address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  return target;
}

static int stream_socket(const struct target *target) {
  return socket(target->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static void dial_target(struct connection *connection, const struct target *target) {
  if (pumps_dialled >= CONNECTIONS_MAX) return connection_fail(connection, "too-many", EAGAIN, "dial", "too many dialled connections");
  int fd = stream_socket(target);
  if (fd < 0) return connection_fail(connection, code_of_errno(errno), errno, "dial", strerror(errno));
  struct queue rest = {0};
  struct pump *pump = pump_make(-1, fd, true);
  int left = pump == NULL ? -1 : connection_release(connection, &rest);
  if (left < 0) {
    if (pump != NULL) pump_close(pump, false);
    else close(fd);
    return connection_fail(connection, "failed", ENOMEM, "dial", "no memory");
  }
  pump->left.fd = left;
  /* Bytes sent right behind the request belong to the port; `rest` may be long, so it counts as already read. */
  pump->to_right = rest;
  pump->connecting = true;
  if (connect(fd, (const struct sockaddr *)&target->address, target->length) != 0 && errno != EINPROGRESS) return refuse_dial(pump, errno);
  if (source_idle(&pump->left) != 0 || source_watch(&pump->right, EPOLLOUT) != 0) pump_close(pump, true);
}

void dial_port(struct connection *connection, uint16_t port, bool six) {
  struct target target = loopback(port, six);
  dial_target(connection, &target);
}

/* The path is looked up inside, by process 1: a link leads to where it leads inside. */
void dial_path(struct connection *connection, const char *path) {
  struct target target = {.length = sizeof(struct sockaddr_un)};
  struct sockaddr_un *address = (struct sockaddr_un *)&target.address;
  address->sun_family = AF_UNIX;
  snprintf(address->sun_path, sizeof address->sun_path, "%s", path);
  dial_target(connection, &target);
}

/* The folder of the sockets lies outside this root: only its descriptor leads there, and only for a moment. */
int dial_outside(const char *name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "./%s", name);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  int result = fchdir(plan->run) == 0 ? connect(fd, (struct sockaddr *)&address, sizeof address) : -1;
  if (chdir("/") != 0) _exit(71); /* never go on with a foot outside */
  if (result == 0) return fd;
  close(fd);
  return -1;
}

static void turn_away(int fd) {
  reset_on_close(fd);
  if (fd >= 0) close(fd);
}

void hand_over(int inside, const char *preface, size_t length) {
  union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof(int))]; } control = {0};
  struct iovec data = {.iov_base = (void *)preface, .iov_len = length};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  *rights = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
  memcpy(CMSG_DATA(rights), &inside, sizeof(int));
  int outside = dial_outside(plan->direct);
  bool handed = outside >= 0 && sendmsg(outside, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)length;
  if (outside >= 0) close(outside);
  if (handed) close(inside);
  else turn_away(inside);
}

/* Takes the descriptor, whatever comes of it. */
static void forward_start(int inside, const char *name) {
  if (strcmp(name, plan->direct) == 0) return hand_over(inside, PROXIED, 1);
  int outside = pumps_forwarded < FORWARDS_MAX ? dial_outside(name) : -1;
  struct pump *pump = outside < 0 ? NULL : pump_make(inside, outside, false);
  if (pump == NULL) {
    turn_away(inside);
    if (outside >= 0) close(outside);
    return;
  }
  if (pump_watch(pump) != 0) pump_close(pump, true);
}

static void forward_ready(struct source *source, uint32_t events) {
  (void)events;
  struct forward *forward = container(source, struct forward, source);
  for (int round = 0; round < 16; round++) {
    bool refused;
    int inside = accept_connection(source->fd, &refused);
    if (inside < 0 && !refused) return;
    if (!refused) {
      forward_start(inside, forward->name);
      continue;
    }
    turn_away(inside);
    return restore_spare();
  }
}

void forwards_listen(void) {
  const int on = 1;
  for (size_t at = 0; at < 2 * plan->forward_count; at++) {
    bool six = at % 2 == 1;
    struct target target = loopback(plan->forwards[at / 2].port, six);
    int fd = stream_socket(&target);
    if (fd < 0) continue;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (six) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    forwards[at] = (struct forward){.source = {.fd = fd, .ready = forward_ready}, .name = plan->forwards[at / 2].name};
    if (bind(fd, (struct sockaddr *)&target.address, target.length) != 0 || listen(fd, 64) != 0 || source_watch(&forwards[at].source, EPOLLIN) != 0) source_close(&forwards[at].source);
  }
}
