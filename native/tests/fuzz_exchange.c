/* Fuzzes plain requests: programs, hosts and a server that say anything at any time, on real sockets. The server keeps a book of what
   the mover may say and what a program may get; what is not in it ends the run. Linked with the parts of the mover but its loop and
   its doors, where `connect` is fuzz_connect and `dup` is fuzz_dup. fuzz_exchange <seconds> [seed] */
#undef connect
#undef dup
#include "exchange_book.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
int fuzz_connect(int fd, const struct sockaddr *address, socklen_t length);

int mover_watch(struct source *source, uint32_t events) {
  if (source->fd < 0 || (source->added && source->events == events)) return 0;
  struct epoll_event event = {.events = events, .data.ptr = source};
  if (events != 0 && source->fd > server && once_in(400)) return -1;
  int act = events == 0 ? EPOLL_CTL_DEL : source->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (events == 0 && !source->added) return 0;
  must(epoll_ctl(loop, act, source->fd, &event) == 0);
  source->added = events != 0;
  source->events = events;
  return 0;
}

void mover_close(struct source *source) {
  mover_watch(source, 0);
  if (source->fd >= 0) close(source->fd);
  source->fd = -1;
}

/* The port says which request is dialled: a host answers at once, later, never, or refuses. */
int fuzz_connect(int fd, const struct sockaddr *address, socklen_t length) {
  struct sockaddr_in to = *(const struct sockaddr_in *)(const void *)address;
  struct slot *slot = &slots[ntohs(to.sin_port) - 1];
  must(length >= sizeof to && ntohs(to.sin_port) <= SLOTS && slot->origin < 0);
  size_t plan = below(12);
  if (plan == 0) return errno = EINPROGRESS, -1;
  if (plan == 1) return errno = ENETUNREACH, -1;
  socklen_t size = sizeof to;
  getsockname(listener, (struct sockaddr *)&to, &size);
  if (plan == 2) to.sin_port = htons((uint16_t)refused_port);
  if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS) return -1;
  if (plan == 2) return errno = EINPROGRESS, -1;
  must((slot->origin = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
  return plan < 7 ? 0 : (errno = EINPROGRESS, -1);
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
}

static void pump(void) {
  for (size_t count = 0;; count++) {
    struct epoll_event event;
    listen_to_mover();
    if (epoll_wait(loop, &event, 1, 0) < 1) return;
    must(count < EVENTS_MAX);
    struct source *source = event.data.ptr;
    source->ready(source, event.events);
  }
}

/* The server says a word to the mover. What does not fit the book has no effect, so the book stays as it is. */
static void say(const char *word, uint64_t id) {
  static char line[LINE_MAX_BYTES];
  size_t length = 0, head = 1 + below(once_in(20) ? 40000 : 200);
  uint64_t count = once_in(3) ? below(40) : once_in(3) ? below(200000) : 0, keep = once_in(3) ? 0 : 1 + below(5000);
  struct slot *slot = slot_of(id);
  enum book book = slot == NULL ? NONE : slot->book;
  bool fetches_now = strcmp(word, "fetch") == 0, streams = strcmp(word, "stream") == 0, replies = streams || strcmp(word, "reply") == 0;
  length += (size_t)sprintf(line, "\"%s %" PRIu64, word, id);
  if (fetches_now) length += (size_t)sprintf(line + length, " %s %zu %zu %zu 0", once_in(20) ? "nowhere" : "127.0.0.1", slot == NULL ? 1 : (size_t)(slot - slots) + 1, below(3000), 1 + below(9000));
  if (replies && !streams) length += (size_t)sprintf(line + length, " %" PRIu64 " %" PRIu64, keep, count);
  if (fetches_now || replies) {
    line[length++] = ' ';
    memset(line + length, fetches_now ? '7' : '4', 2 * head);
    length += 2 * head;
  }
  length += (size_t)sprintf(line + length, "\"\n");
  if (fetches_now && book == SHOWN) {
    fetches++;
    slot->book = FETCHING;
    slot->request = head;
    slot->is_out = slot->is_over = slot->marked = false;
    slot->base = slot->log.length = 0;
    shut(&slot->origin);
  } else if (strcmp(word, "more") == 0 && book == ANSWER) {
    slot->book = FETCHING;
  } else if (replies && book == ANSWER) {
    memset(text, 'D', head);
    add(&slot->owed, text, head);
    slot->book = SENDING;
    slot->streams = streams;
    slot->kept = !streams && keep > 0;
    slot->left = streams ? UINT64_MAX : count;
    owe(slot);
  } else if (strcmp(word, "give") == 0 && (book == SHOWN || book == ODD || book == ANSWER || book == NO_ANSWER)) {
    slot->book = GIVING;
  } else if (strcmp(word, "drop") == 0 && book == GIVEN) {
    slot->id = 0;
    slot->book = FALLING;
  } else if ((strcmp(word, "cut") == 0 || strcmp(word, "drop") == 0) && book != NONE && book != GIVEN) {
    if (book == OFFERED) slot->id = 0; /* the server does not know of it, and hears nothing */
    slot->book = FALLING;
  }
  channel_take(line, length);
}

static void server_acts(void) {
  static const char *const words[] = {"fetch", "more", "reply", "stream", "give", "cut", "drop"};
  static const char *const right[][3] = {[SHOWN] = {"fetch", "fetch", "give"}, [ODD] = {"give", "give", "drop"}, [ANSWER] = {"reply", "stream", "more"},
                                         [NO_ANSWER] = {"give", "give", "drop"}, [GIVEN] = {"drop", "drop", "drop"}, [FALLING] = {NULL}};
  struct slot *slot = &slots[below(SLOTS)];
  const char *word = right[slot->book][below(3)];
  if (slot->id == 0) return;
  if (once_in(12)) word = words[below(sizeof words / sizeof *words)];
  if (word == NULL) return;
  if (once_in(12)) say(word, once_in(2) ? slot->id + CONNECTIONS_MAX : 1 + below(2000));
  else say(word, slot->id);
}

static const char *const pieces[] = {"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD http://a/ HTTP/1.1\r\n\r\n", "GET ", "\r\n\r\n", "POST /\r\n\r\n", "x"};

static void program_acts(struct slot *slot) {
  uint8_t data[1 << 14];
  if (slot->program < 0) return;
  const char *piece = pieces[once_in(3) ? below(sizeof pieces / sizeof *pieces) : below(2)];
  switch (below(8)) {
    case 0: if (once_in(6)) shut(&slot->program); return;
    case 1: if (once_in(6)) shutdown(slot->program, SHUT_WR); return;
    case 2: case 3:
      if (slot->said.length < 4000 && send(slot->program, piece, strlen(piece), MSG_NOSIGNAL | MSG_DONTWAIT) > 0) add(&slot->said, piece, strlen(piece));
      return;
    default: break;
  }
  for (ssize_t count; (count = recv(slot->program, data, 1 + below(sizeof data), MSG_DONTWAIT)) > 0;) {
    must(slot->got + (size_t)count <= slot->owed.length && memcmp(data, slot->owed.data + slot->got, (size_t)count) == 0);
    slot->got += (size_t)count;
    if (once_in(4)) return;
  }
  /* All of it was sent before its end was told. */
  if (slot->book == WAITING || slot->book == LAST) must(slot->got == slot->owed.length);
}

static void host_acts(struct slot *slot) {
  static uint8_t data[70000];
  static const char *const heads[] = {"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 103 Hint\r\n\r\n", "\r\n\r\n", "HTTP/1.1 ", "\r\n", "\r"};
  const struct linger linger = {.l_onoff = 1};
  if (slot->origin < 0) return;
  size_t length = once_in(3) ? below(sizeof data) : below(60);
  const char *head = heads[below(sizeof heads / sizeof *heads)];
  switch (below(12)) {
    case 0: setsockopt(slot->origin, SOL_SOCKET, SO_LINGER, &linger, sizeof linger); shut(&slot->origin); return;
    case 1: case 2: shutdown(slot->origin, SHUT_WR); return;
    case 3:
      /* One byte that is marked as urgent, and that nobody asks for. */
      if (!slot->marked && once_in(3)) send(slot->origin, "!", 1, MSG_OOB | MSG_NOSIGNAL | MSG_DONTWAIT), slot->marked = true;
      return;
    case 4: case 5: case 6: case 7: memcpy(data, head, length = strlen(head)); break;
    default: for (size_t at = 0; at < length; at++) data[at] = (uint8_t)('a' + below(20));
  }
  ssize_t count = send(slot->origin, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count <= 0) return;
  add(&slot->log, data, (size_t)count);
  owe(slot);
}

static void open_slot(struct slot *slot) {
  int pair[2];
  must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
  const int size = 8192;
  if (once_in(2)) setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  door.count++;
  struct connection *connection = connection_add(pair[0], &door);
  must(connection != NULL);
  *slot = (struct slot){.id = connection->id, .book = OFFERED, .program = pair[1], .origin = -1, .given = -1, .is_over = true};
  if (once_in(2)) {
    add(&slot->said, pieces[0], strlen(pieces[0]));
    must(send(pair[1], pieces[0], strlen(pieces[0]), MSG_NOSIGNAL) > 0);
  }
  exchange_offer(connection);
}

static size_t descriptors(void) {
  size_t count = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (readdir(folder) != NULL) count++;
  return closedir(folder), count;
}

static void run(size_t before) {
  for (size_t step = 0; step < 400; step++) {
    struct slot *slot = &slots[below(SLOTS)];
    if (slot->book == NONE) open_slot(slot);
    pump();
    program_acts(slot);
    host_acts(slot);
    if (once_in(2)) pump();
    server_acts();
    if (once_in(3)) pump();
    if (once_in(10)) connections_tick(now += (int64_t)below(1000));
    pump();
    /* The server has heard that it is gone, or has let it go. */
    if (slot->id == 0 && slot->book == FALLING) forget(slot);
  }
  for (size_t at = 0; at < SLOTS; at++) {
    pump();
    if (slots[at].id != 0) say("drop", slots[at].id);
    pump();
    must(slots[at].book == NONE || slots[at].id == 0);
    forget(&slots[at]);
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
  for (size_t at = 0; at < SLOTS; at++) slots[at] = (struct slot){.program = -1, .origin = -1, .given = -1};
  for (size_t before = descriptors(); time(NULL) < end; runs++) run(before);
  printf("runs=%zu acts=%zu fetches=%zu ends=%zu gones=%zu\n", runs, acts, fetches, ends, gones);
  return 0;
}
