/* Process 1 of a sandbox hands over each connection that a program inside has made: its descriptor, with a few bytes that say what
   was dialled. A connection without a descriptor is itself the one to be served. */
#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct door {
  struct source source;
  struct door *next;
  uint32_t id;
  size_t count;     /* of its connections, and of arrivals; a door that is shut lives until they have ended */
  bool shut, full;
};

/* Accepted, and what comes with it is not here yet. */
struct arrival {
  struct source source;
  struct arrival *next;
  struct door *door;
  int64_t since;
};

static struct door *doors;
static struct arrival *arrivals;
static size_t door_count, arrival_count;

static void arrival_free(struct arrival *arrival) {
  for (struct arrival **link = &arrivals; *link != NULL; link = &(*link)->next) {
    if (*link != arrival) continue;
    *link = arrival->next;
    break;
  }
  arrival_count--;
  free(arrival);
}

static bool is_tcp(int fd) {
  int domain = 0, type = 0, protocol = 0;
  socklen_t size = sizeof domain;
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return false;
  if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0) return false;
  return (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM && protocol == IPPROTO_TCP;
}

/* A program that knows the proxy speaks first, and with it a plain request may come. */
static bool speaks_http(const uint8_t *preface, size_t length) { return length == 0 || (length == 1 && preface[0] == PROXIED); }

static void take(int fd, struct door *door, const uint8_t *preface, size_t length) {
  struct connection *connection = connection_add(fd, door);
  if (connection == NULL) return door_left(door);
  if (speaks_http(preface, length)) exchange_offer(connection);
  else connection_give(connection, preface, length);
}

/* One descriptor, of a TCP connection. The kernel closes those for which there is no room. */
static int receive_descriptor(int from, uint8_t *preface, size_t *length) {
  union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof(int))]; } control;
  struct iovec data = {.iov_base = preface, .iov_len = PREFACE_MAX};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t count = recvmsg(from, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  struct cmsghdr *head = count <= 0 ? NULL : CMSG_FIRSTHDR(&message);
  int fd = -1;
  if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof fd))
    memcpy(&fd, CMSG_DATA(head), sizeof fd);
  if (fd >= 0 && ((message.msg_flags & MSG_CTRUNC) != 0 || !is_tcp(fd))) {
    close(fd);
    fd = -1;
  }
  *length = count > 0 ? (size_t)count : 0;
  return fd;
}

/* Whether something has come, and whether a descriptor comes with it: without room for one, the kernel says that it is missing. */
static int look(int fd) {
  char byte;
  struct iovec data = {.iov_base = &byte, .iov_len = 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
  ssize_t count = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (count <= 0) return -1;
  return (message.msg_flags & MSG_CTRUNC) != 0 ? 2 : 1;
}

/* False: nothing has come yet. */
static bool arrived(int fd, struct door *door) {
  int found = door->shut ? -1 : look(fd);
  if (found == 0) return false;
  if (found == 1) {
    take(fd, door, NULL, 0);
    return true;
  }
  uint8_t preface[PREFACE_MAX];
  size_t length = 0;
  int inside = found < 0 ? -1 : receive_descriptor(fd, preface, &length);
  close(fd);
  if (inside < 0) {
    door_left(door);
    return true;
  }
  const int on = 1;
  setsockopt(inside, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  /* Process 1 may not have said so: splice would wait for a program that does not read, and all others with it. */
  fcntl(inside, F_SETFL, fcntl(inside, F_GETFL) | O_NONBLOCK);
  take(inside, door, preface, length);
  return true;
}

/* Process 1 sends at once: what says nothing for so long is itself the connection. */
static void settle(int fd, struct door *door) {
  if (!arrived(fd, door)) take(fd, door, NULL, 0);
}

static void arrival_ready(struct source *source, uint32_t events) {
  (void)events;
  struct arrival *arrival = container(source, struct arrival, source);
  struct door *door = arrival->door;
  int fd = source->fd;
  if (!door->shut && look(fd) == 0) return;
  mover_watch(source, 0);
  arrival_free(arrival);
  settle(fd, door);
}

static bool await(int fd, struct door *door) {
  struct arrival *arrival = calloc(1, sizeof *arrival);
  if (arrival == NULL) return false;
  *arrival = (struct arrival){.source = {.fd = fd, .ready = arrival_ready}, .next = arrivals, .door = door, .since = monotonic_ms()};
  if (mover_watch(&arrival->source, EPOLLIN) != 0) {
    free(arrival);
    return false;
  }
  arrivals = arrival;
  arrival_count++;
  return true;
}

static void door_watch(struct door *door) {
  door->full = door->count >= DOOR_CONNECTIONS_MAX;
  mover_watch(&door->source, door->full || channel_crowded() ? 0 : (uint32_t)EPOLLIN);
}

static int accept_connection(int from) {
  static int spare = -1; /* given up when no descriptor is left, so that a connection can be taken and turned away */
  if (spare < 0) spare = open("/", O_PATH | O_CLOEXEC);
  int fd = accept4(from, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0 || (errno != EMFILE && errno != ENFILE)) return fd;
  if (spare >= 0) close(spare);
  fd = accept4(from, NULL, NULL, SOCK_CLOEXEC);
  if (fd >= 0) close(fd);
  spare = open("/", O_PATH | O_CLOEXEC);
  return -1;
}

static void door_ready(struct source *source, uint32_t events) {
  (void)events;
  struct door *door = container(source, struct door, source);
  int fd = accept_connection(source->fd);
  if (fd >= 0) {
    door->count++;
    if (!arrived(fd, door) && !await(fd, door)) {
      close(fd);
      door_left(door);
    }
  }
  door_watch(door);
}

uint32_t door_number(const struct door *door) { return door->id; }

void door_left(struct door *door) {
  door->count--;
  if (!door->shut) {
    if (door->full) door_watch(door);
  } else if (door->count == 0) {
    free(door);
  }
}

void doors_resume(void) {
  for (struct door *door = doors; door != NULL; door = door->next) door_watch(door);
}

static int listen_at(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) return errno = ENAMETOOLONG, -1;
  strcpy(address.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  /* Process 1 is another user; no further user can enter the folders above. */
  if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && chmod(path, 0666) == 0 && listen(fd, 4 * DOOR_CONNECTIONS_MAX) == 0) return fd;
  int error = errno;
  close(fd);
  return errno = error, -1;
}

void door_open(uint32_t id, const char *path) {
  struct door *door = door_count < DOORS_MAX ? calloc(1, sizeof *door) : NULL;
  int fd = door == NULL ? -1 : listen_at(path), error = door == NULL ? ENOMEM : errno;
  if (fd < 0) {
    free(door);
    channel_say("door %" PRIu32 " %d", id, error);
    return;
  }
  *door = (struct door){.source = {.fd = fd, .ready = door_ready}, .next = doors, .id = id};
  doors = door;
  door_count++;
  door_watch(door);
  channel_say("door %" PRIu32 " 0", id);
}

void door_shut(uint32_t id) {
  for (struct door **link = &doors; *link != NULL; link = &(*link)->next) {
    struct door *door = *link;
    if (door->id != id) continue;
    *link = door->next;
    door_count--;
    mover_close(&door->source);
    door->shut = true;
    door->count++;
    door_left(door);
    return;
  }
}

size_t arrivals_timed(void) { return arrival_count; }

void arrivals_tick(int64_t now) {
  for (struct arrival *arrival = arrivals, *next; arrival != NULL; arrival = next) {
    next = arrival->next;
    if (now - arrival->since < SILENT_MS && !arrival->door->shut) continue;
    struct door *door = arrival->door;
    int fd = arrival->source.fd;
    mover_watch(&arrival->source, 0);
    arrival_free(arrival);
    settle(fd, door);
  }
}
