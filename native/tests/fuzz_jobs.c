/* Fuzzes the requests of the helper that run in a child each: children that answer anything in any pieces, end at any moment, and are told
   of their disk or not. Each request gets one answer, the disk comes whole, and no descriptor stays. Linked with host/jobs.c,
   shared/answer.c and shared/frames.c alone, where fork, socketpair, waitid and waitpid are those below. fuzz_jobs <seconds> [seed] */
#include "../host/host.h"
#include "../launch/launch.h"
#include "invent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 6

static struct child {
  pid_t pid; /* 0: none */
  int id, end;
  bool is_zombie, has_answer;
  char *answer, *disk; /* what it says; what it is told */
  size_t answer_length, said, disk_length;
} children[CHILDREN];

static struct {
  struct source *source;
  uint32_t events;
} watched[CHILDREN];

static pid_t last_pid;
static int last_end = -1, last_id;
static size_t launched, told;

static struct child *child_of(int id) {
  for (size_t at = 0; at < CHILDREN; at++)
    if (children[at].pid != 0 && children[at].id == id) return &children[at];
  abort();
}

static void answered(const char *id) {
  struct child *child = child_of(atoi(id));
  if (child->has_answer) abort();
  child->has_answer = true;
}

/* What host/jobs.c is linked with. */
int fuzz_socketpair(int domain, int type, int protocol, int ends[2]);
pid_t fuzz_fork(void);
int fuzz_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
pid_t fuzz_waitpid(pid_t pid, int *status, int options);
#undef socketpair
#undef fork
#undef waitid
#undef waitpid
extern int socketpair(int domain, int type, int protocol, int ends[2]);

int fuzz_socketpair(int domain, int type, int protocol, int ends[2]) {
  if (once_in(64)) return errno = EMFILE, -1;
  if (socketpair(domain, type, protocol, ends) != 0) abort();
  last_end = fcntl(ends[1], F_DUPFD_CLOEXEC, 0);
  fcntl(last_end, F_SETFL, O_NONBLOCK);
  return 0;
}

pid_t fuzz_fork(void) {
  if (once_in(64)) {
    close(last_end);
    last_end = -1;
    return errno = EAGAIN, -1;
  }
  return ++last_pid;
}

static struct child *zombie(void) {
  for (size_t at = 0; at < CHILDREN; at++)
    if (children[at].pid != 0 && children[at].is_zombie) return &children[at];
  return NULL;
}

int fuzz_waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
  (void)type, (void)id, (void)options;
  struct child *child = zombie();
  info->si_pid = child == NULL ? 0 : child->pid;
  return 0;
}

pid_t fuzz_waitpid(pid_t pid, int *status, int options) {
  (void)options;
  *status = 0;
  for (size_t at = 0; at < CHILDREN; at++)
    if (children[at].pid == pid) children[at].is_zombie = false;
  return pid;
}

int unprotect_from_oom(void) { return 0; }
int launch_main(const struct fields *request, int result_fd) { return (void)request, result_fd; }
void process_reaped(pid_t pid, int status) { (void)pid, (void)status, abort(); }
void process_watch_launched(const struct fields *reply, const char *sandbox, pid_t launcher) {
  if (!launch_is_running(launcher) || sandbox[0] != 's') abort();
  launched += field(reply, "pid") != NULL;
}
void channel_frame(uint8_t kind, const void *payload, size_t length) {
  struct fields fields = {.data = payload, .length = length};
  if ((kind != REPLY && kind != ERROR) || !fields_valid(&fields)) abort();
  answered(field(&fields, "id"));
}
void channel_reply(const char *id, struct answer *answer) {
  answered(id);
  output_free(&answer->fields);
}
int loop_add(struct source *source, uint32_t events) {
  for (size_t at = 0; at < CHILDREN; at++) {
    if (watched[at].source != NULL) continue;
    watched[at].source = source;
    watched[at].events = events;
    return 0;
  }
  abort();
}
void loop_change(struct source *source, uint32_t events) {
  for (size_t at = 0; at < CHILDREN; at++)
    if (watched[at].source == source) watched[at].events = events;
}
void loop_remove(struct source *source) {
  if (source->fd < 0) return;
  for (size_t at = 0; at < CHILDREN; at++)
    if (watched[at].source == source) watched[at].source = NULL;
  close(source->fd);
  source->fd = -1;
}

/* What the fuzzer does. */
static void handle(const struct fields *request, struct answer *answer) { (void)request, (void)answer; }

static void start(struct child *child) {
  char data[256];
  size_t length = put_word(data, "op=launch"), size = 0;
  bool launch = !once_in(4);
  snprintf(data + length, sizeof data - length, "sandbox=s%d", (int)below(CHILDREN));
  length += strlen(data + length) + 1;
  if (!once_in(3)) length += put_word(data + length, "disk_later=1");
  struct fields request = {.data = data, .length = length};
  char id[24], answer[256], fields[64];
  *child = (struct child){.id = ++last_id, .end = -1, .pid = -1};
  snprintf(id, sizeof id, "%d", child->id);
  last_end = -1;
  job_start(&request, id, launch ? NULL : handle, FORKED);
  if (child->has_answer) { /* it could not be started */
    if (last_end >= 0) close(last_end);
    child->pid = 0;
    return;
  }
  child->pid = last_pid;
  child->end = last_end;
  size = put_word(fields, "ok=1");
  size += put_word(fields + size, once_in(2) ? "pid=5" : "x=y");
  size = put_frame(answer, once_in(4) ? ERROR : REPLY, fields, size);
  if (once_in(3)) size = spoil(answer, size);
  child->answer = exactly(answer, size);
  child->answer_length = size;
}

static void tell_disk(void) {
  static char room[1 << 20];
  struct answer answer = {0};
  size_t length = (size_t)snprintf(room, 64, "sandbox=s%d", (int)below(CHILDREN)) + 1;
  if (once_in(8)) length += put_word(room + length, "cancel=1");
  if (once_in(2)) {
    size_t more = below(once_in(4) ? sizeof room - 128 : 4096);
    memset(room + length, 'm', more + 8);
    memcpy(room + length, "mount=", 6);
    length += more + 8;
    room[length - 1] = '\0';
  }
  struct fields request = {.data = exactly(room, length), .length = length};
  launch_disk(&request, &answer);
  told += !answer.failed;
  output_free(&answer.fields);
  free((char *)request.data);
}

static void say(struct child *child) {
  size_t left = child->answer_length - child->said, piece = left == 0 ? 0 : 1 + below(left);
  ssize_t count = piece == 0 ? 0 : send(child->end, child->answer + child->said, piece, MSG_NOSIGNAL);
  if (count > 0) child->said += (size_t)count;
}

/* The frame of the disk, from its first byte to its last, and nothing else. */
static void hear(struct child *child) {
  static char room[1 << 17];
  ssize_t count = recv(child->end, room, 1 + below(sizeof room), 0);
  if (count <= 0) return;
  child->disk = realloc(child->disk, child->disk_length + (size_t)count);
  memcpy(child->disk + child->disk_length, room, (size_t)count);
  child->disk_length += (size_t)count;
  struct header header;
  if (child->disk_length < sizeof header) return;
  memcpy(&header, child->disk, sizeof header);
  if (header.kind != REQUEST || child->disk_length > sizeof header + header.length) abort();
  struct fields fields = {.data = child->disk + sizeof header, .length = header.length};
  if (child->disk_length == sizeof header + header.length && (!fields_valid(&fields) || field(&fields, "cancel") != NULL)) abort();
}

static void end(struct child *child) {
  if (child->pid <= 0 || child->end < 0) return;
  /* Sometimes a process that it left behind holds its end open. */
  int kept = once_in(8) ? dup(child->end) : -1;
  close(child->end);
  child->end = -1;
  child->is_zombie = true;
  jobs_reap();
  if (!child->has_answer) abort();
  if (kept >= 0) close(kept);
  free(child->answer);
  free(child->disk);
  child->pid = 0;
}

static void loop_once(void) {
  size_t at = below(CHILDREN);
  struct source *source = watched[at].source;
  if (source == NULL) return;
  struct pollfd ready = {.fd = source->fd, .events = (short)(((watched[at].events & EPOLLIN) ? POLLIN : 0) | ((watched[at].events & EPOLLOUT) ? POLLOUT : 0))};
  if (poll(&ready, 1, 0) > 0) source->ready(source, (uint32_t)ready.revents);
}

static void step(void) {
  struct child *child = &children[below(CHILDREN)];
  size_t act = below(16);
  if (act == 0 && child->pid == 0) start(child);
  else if (act == 1) tell_disk();
  else if (child->pid <= 0 || act > 9) loop_once();
  else if (act < 5) say(child);
  else if (act < 9) hear(child);
  else end(child);
}

int main(int argc, char **argv) {
  time_t until = fuzz_begin(argc, argv);
  int free_before = dup(0);
  size_t runs = 0;
  close(free_before);
  for (; time(NULL) < until; runs++) {
    for (size_t steps = 1 + below(400); steps > 0; steps--) step();
    for (size_t at = 0; at < CHILDREN; at++) end(&children[at]);
    int free_now = dup(0);
    if (free_now != free_before) abort();
    close(free_now);
    for (size_t at = 0; at < CHILDREN; at++)
      if (watched[at].source != NULL) abort();
  }
  printf("runs=%zu acts=%zu told=%zu\n", runs, launched, told);
  return 0;
}
