/* Fuzzes plain requests and tunnels: programs, hosts and a server that say anything at any time, on real sockets. The server keeps a
   book of what the mover may say, and what a program and a host may get; what is not in it ends the run. Linked with the parts of the
   mover but its loop and its doors, where `connect` is fuzz_connect, `dup` is fuzz_dup and `send` is fuzz_send.
   fuzz_exchange <seconds> [seed] */
#undef connect
#undef dup
#undef send
#include "exchange_words.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX 200000 /* until nothing is left to do: more is a loop that is kept awake */
#define MOVER_PIPES 32    /* of flow.c, which keeps empty ones */

struct door {
  size_t count;
};

static struct door door;
static int loop, server, listener, refused_port;
static int64_t now = 1000;

int64_t monotonic_ms(void) { return now; }
uint32_t door_number(const struct door *one) { return one == &door; }
void door_left(struct door *one) { one->count--; }
void doors_resume(void) {}
void door_open(uint32_t id, const char *path) { (void)id, (void)path; }
void door_shut(uint32_t id) { (void)id; }
int fuzz_dup(int fd) { return once_in(40) ? (errno = EMFILE, -1) : dup(fd); }
ssize_t fuzz_send(int fd, const void *data, size_t length, int flags);
int fuzz_connect(int fd, const struct sockaddr *address, socklen_t length);

/* Some of it: the receiver has no room for more. */
ssize_t fuzz_send(int fd, const void *data, size_t length, int flags) { return send(fd, data, length > 1 && once_in(8) ? below(length) + 1 : length, flags); }

/* The loop does not see that an address answers, before its host says so. */
static struct slot *dialled_slot(int fd) {
  for (size_t at = 0; at < SLOTS; at++)
    if (slots[at].dialled == fd) return &slots[at];
  return NULL;
}

static void host_answers(struct slot *slot) {
  struct epoll_event event = {.events = slot->waiting->events, .data.ptr = slot->waiting};
  must(epoll_ctl(loop, EPOLL_CTL_MOD, slot->dialled, &event) == 0);
  slot->dialled = -1;
}

int mover_watch(struct source *source, uint32_t events) {
  if (source->fd < 0 || (source->added && source->events == events)) return 0;
  struct epoll_event event = {.events = events, .data.ptr = source};
  if (events != 0 && source->fd > server && once_in(400)) return -1;
  int act = events == 0 ? EPOLL_CTL_DEL : source->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (events == 0 && !source->added) return 0;
  struct slot *slot = dialled_slot(source->fd);
  if (slot != NULL) slot->waiting = source, event.events = 0;
  must(epoll_ctl(loop, act, source->fd, &event) == 0);
  source->added = events != 0;
  source->events = events;
  return 0;
}

void mover_close(struct source *source) {
  struct slot *slot = source->fd < 0 ? NULL : dialled_slot(source->fd);
  mover_watch(source, 0);
  if (slot != NULL) slot->dialled = -1;
  if (source->fd >= 0) close(source->fd);
  source->fd = -1;
}

/* The port says which connection is dialled for: a host answers at once, soon, later, refuses, or breaks. It may have little room. */
int fuzz_connect(int fd, const struct sockaddr *address, socklen_t length) {
  struct sockaddr_in to = *(const struct sockaddr_in *)(const void *)address;
  struct slot *slot = &slots[ntohs(to.sin_port) - 1];
  const int little = 2048, room = once_in(3) ? little : 1 << 16;
  must(length >= sizeof to && ntohs(to.sin_port) <= SLOTS && slot->origin < 0);
  if (once_in(2)) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
  size_t plan = below(12);
  if (plan == 0) return errno = EINPROGRESS, -1;
  if (plan == 1) return errno = ENETUNREACH, -1;
  socklen_t size = sizeof to;
  getsockname(listener, (struct sockaddr *)&to, &size);
  setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  if (plan == 2) to.sin_port = htons((uint16_t)refused_port);
  if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS) return -1;
  if (plan == 2) return errno = EINPROGRESS, -1;
  must((slot->origin = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
  if (plan > 7) slot->dialled = fd;
  return plan < 6 ? 0 : (errno = EINPROGRESS, -1);
}

static void listen_to_mover(void) {
  static char data[1 << 20];
  static size_t length;
  union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof(int))]; } control;
  for (;;) {
    struct iovec part = {data + length, sizeof data - length - 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t count = recvmsg(server, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0) break;
    int fd = -1;
    if (CMSG_FIRSTHDR(&message) != NULL) memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    length += (size_t)count;
    for (char *end; (end = memchr(data, '\n', length)) != NULL; memmove(data, end + 1, length)) {
      *end = '\0';
      length -= (size_t)(end + 1 - data);
      hear(data, &fd);
    }
    must(fd < 0);
  }
  must(length == 0);
  heard_all();
}

static void pump(void) {
  for (size_t count = 0;; count++) {
    struct epoll_event event;
    speaks_freely = count > 0;
    listen_to_mover();
    speaks_freely = false;
    if (epoll_wait(loop, &event, 1, 0) < 1) return;
    must(count < EVENTS_MAX);
    struct source *source = event.data.ptr;
    source->ready(source, event.events);
  }
}

/* Three whole requests, and what is none. */
static const char *const pieces[] = {"CONNECT a:443 HTTP/1.1\r\n\r\n", "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD http://a/ HTTP/1.1\r\n\r\n",
                                     "CONNECT ", "GET ", "\r\n\r\n", "POST /\r\n\r\n", "x"};

static uint8_t invented[70000];

static size_t invent(size_t length) {
  for (size_t at = 0; at < length; at++) invented[at] = (uint8_t)('a' + below(20));
  return length;
}

static void program_says(struct slot *slot) {
  const char *piece = pieces[once_in(3) ? below(sizeof pieces / sizeof *pieces) : below(3)];
  size_t length = strlen(piece);
  if (slot->said.length > (slot->tunnels ? 300000 : 4000)) return;
  if (slot->tunnels) length = invent(once_in(3) ? below(30000) : below(60));
  else memcpy(invented, piece, length);
  ssize_t count = send(slot->program, invented, length, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count > 0) add(&slot->said, invented, (size_t)count);
}

static void program_acts(struct slot *slot) {
  if (slot->program < 0) return;
  switch (below(8)) {
    case 0:
      if (once_in(12)) shut(&slot->program);
      else if (once_in(6)) shutdown(slot->program, SHUT_WR);
      else break;
      slot->ended = true;
      return;
    case 1: case 2: case 3: if (!slot->ended) program_says(slot); return;
    /* One byte that is marked as urgent; the mover does not ask for it. */
    case 4:
      if (slot->tunnels && slot->is_tcp && !slot->ended && !slot->pressed) slot->pressed = send(slot->program, "!", 1, MSG_OOB | MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
      return;
    default: break;
  }
  while (program_reads(slot, 1 + below(1 << 14)) && !once_in(4)) {}
  if (slot->book == WAITING || slot->book == LAST) program_has_all(slot);
}

static void host_says(struct slot *slot) {
  static const char *const heads[] = {"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 103 Hint\r\n\r\n", "\r\n\r\n", "HTTP/1.1 ", "\r\n", "\r"};
  const char *head = heads[below(sizeof heads / sizeof *heads)];
  size_t length = once_in(2) ? strlen(head) : invent(once_in(3) ? below(sizeof invented) : below(60));
  if (length == strlen(head)) memcpy(invented, head, length);
  ssize_t count = send(slot->origin, invented, length, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0 && errno == ECONNRESET) shut(&slot->origin); /* it would read an end next */
  if (count <= 0) return;
  add(&slot->log, invented, (size_t)count);
  owe(slot);
}

static void host_acts(struct slot *slot) {
  const struct linger linger = {.l_onoff = 1};
  if (slot->dialled >= 0 && once_in(3)) host_answers(slot);
  if (slot->origin < 0) return;
  switch (below(12)) {
    case 0:
      if (!once_in(3)) break;
      both_read(slot);
      setsockopt(slot->origin, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
      shut(&slot->origin);
      return;
    case 1: case 2: if (!slot->tunnels || once_in(4)) shutdown(slot->origin, SHUT_WR); return;
    case 3: if (!slot->marked) slot->marked = send(slot->origin, "!", 1, MSG_OOB | MSG_NOSIGNAL | MSG_DONTWAIT) == 1; return;
    case 4: case 5: case 6: case 7: case 8: host_says(slot); return;
    default: break;
  }
  while (host_reads(slot, 1 + below(1 << 14)) && !once_in(4)) {}
}

/* A socket as process 1 hands it over, or one on which nothing is ever under way. */
static void open_pair(int pair[2], bool is_tcp) {
  struct sockaddr_in to;
  socklen_t size = sizeof to;
  const int on = 1;
  if (!is_tcp) {
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    return;
  }
  getsockname(listener, (struct sockaddr *)&to, &size);
  must((pair[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0 && connect(pair[1], (struct sockaddr *)&to, sizeof to) == 0);
  must((pair[0] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
  setsockopt(pair[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void open_slot(struct slot *slot) {
  int pair[2];
  bool is_tcp = once_in(2);
  const int size = 8192;
  open_pair(pair, is_tcp);
  if (once_in(2)) setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  door.count++;
  struct connection *connection = connection_add(pair[0], &door);
  must(connection != NULL);
  *slot = (struct slot){.id = connection->id, .book = OFFERED, .program = pair[1], .origin = -1, .given = -1, .dialled = -1, .is_tcp = is_tcp, .is_over = true};
  if (once_in(2)) program_says(slot);
  exchange_offer(connection);
}

static size_t descriptors(void) {
  size_t count = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (readdir(folder) != NULL) count++;
  return closedir(folder), count;
}

static void time_goes(void) {
  connections_tick(now += (int64_t)below(1000));
  listen_to_mover();
  silence_ends();
}

static void step(struct slot *slot) {
  if (slot->book == NONE) open_slot(slot);
  pump();
  program_acts(slot);
  host_acts(slot);
  if (once_in(2)) pump();
  for (size_t count = below(4); count > 0; count--) server_acts();
  if (once_in(3)) pump();
  if (once_in(10)) time_goes();
  pump();
  timers_fit();
  /* The server has heard that it is gone, has let it go, or has never known of it. */
  if ((slot->id == 0 && slot->book == FALLING) || (slot->book == OFFERED && connection_find(slot->id) == NULL)) forget(slot);
}

/* The mover has something to say, of its own accord, once both sides have ended. */
static bool is_due(const struct slot *slot) {
  return slot->book == CARRIED || slot->book == LISTENING || (slot->book == FETCHING && slot->goes);
}

/* So a tunnel ends, and the book knows what has to be there. */
static void end_both(struct slot *slot) {
  if (slot->dialled >= 0) host_answers(slot);
  if (slot->program >= 0) shutdown(slot->program, SHUT_WR);
  if (slot->origin >= 0) shutdown(slot->origin, SHUT_WR);
  slot->ended = true;
  for (size_t left = PATIENCE_MS; is_due(slot); left--) {
    must(left > 0);
    pump();
    both_read(slot);
    pump();
    if (is_due(slot)) poll(NULL, 0, 1);
  }
}

static void run(size_t before) {
  for (size_t count = 0; count < 800; count++) step(&slots[below(SLOTS)]);
  for (size_t at = 0; at < SLOTS; at++) {
    struct slot *slot = &slots[at];
    pump();
    if (is_due(slot)) end_both(slot);
    if (slot->id != 0) say("drop", slot->id);
    pump();
    must(slot->book == NONE || slot->id == 0);
    forget(slot);
  }
  pump();
  must(connections_timed() == 0 && door.count == 0);
  size_t after = descriptors();
  must(after >= before && after <= before + MOVER_PIPES);
}

int main(int argc, char **argv) {
  size_t runs = 0;
  int ends_of[2], size = 8 << 20;
  time_t end = fuzz_begin(argc, argv);
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof here;
  signal(SIGPIPE, SIG_IGN);
  loop = epoll_create1(EPOLL_CLOEXEC);
  int refusing = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  must(bind(refusing, (struct sockaddr *)&here, sizeof here) == 0 && getsockname(refusing, (struct sockaddr *)&here, &length) == 0);
  refused_port = ntohs(here.sin_port);
  here.sin_port = 0;
  listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  must(bind(listener, (struct sockaddr *)&here, sizeof here) == 0 && listen(listener, SLOTS) == 0);
  must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends_of) == 0);
  setsockopt(ends_of[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  server = ends_of[1];
  channel_open(ends_of[0]);
  for (size_t at = 0; at < SLOTS; at++) slots[at] = (struct slot){.program = -1, .origin = -1, .given = -1, .dialled = -1};
  for (size_t before = descriptors(); time(NULL) < end; runs++) run(before);
  printf("runs=%zu acts=%zu fetches=%zu ends=%zu gones=%zu opens=%zu saids=%zu carries=%zu wholes=%zu\n", runs, acts, fetches, ends, gones, opens, saids, carries, wholes);
  return 0;
}
