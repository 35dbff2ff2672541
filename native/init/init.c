/* The event loop of process 1: accepts, reaps, keeps the time, stops. */
#include "init.h"
#include "channel/channel.h"
#include "commands/commands.h"
#include "network/network.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const struct init_plan *plan;

static int loop = -1;
static int spare = -1; /* given up to accept and refuse when no descriptor is left */
static struct source listener, signals;
static struct source *retired;
static struct rlimit descriptors;
static pid_t file_children[FILE_CHILDREN_MAX];
static size_t file_child_count;
static bool reap_again;                   /* more may have ended than was reaped at once */
static int64_t stop_kill_at, stop_end_at; /* 0: not stopping */

int64_t now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static int watch(struct source *source, uint32_t events) {
  if (source->fd < 0 || (source->added && source->events == events)) return 0;
  struct epoll_event event = {.events = events, .data.ptr = source};
  if (epoll_ctl(loop, source->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, source->fd, &event) != 0) return -1;
  source->added = true;
  source->events = events;
  return 0;
}

int source_watch(struct source *source, uint32_t events) {
  if (events != 0) return watch(source, events);
  /* A registered descriptor reports hang-ups for ever, even with no events asked for. */
  if (source->added) epoll_ctl(loop, EPOLL_CTL_DEL, source->fd, NULL);
  source->added = false;
  return 0;
}

int source_idle(struct source *source) { return watch(source, 0); }

void source_close(struct source *source) {
  if (source->fd < 0) return;
  source_watch(source, 0);
  close(source->fd);
  source->fd = -1;
}

void retire(struct source *first_member) {
  first_member->retired = retired;
  retired = first_member;
}

static void free_retired(void) {
  while (retired != NULL) {
    struct source *next = retired->retired;
    free(retired);
    retired = next;
  }
}

bool stopping(void) { return stop_kill_at != 0; }

void begin_stop(int64_t grace_ms) {
  int64_t kill_at = now_ms() + grace_ms;
  if (stopping() && stop_kill_at <= kill_at) return;
  stop_kill_at = kill_at;
  kill(-1, SIGTERM);
  kill(-1, SIGCONT);
}

void restore_limits(void) { setrlimit(RLIMIT_NOFILE, &descriptors); }

bool file_child_allowed(void) { return file_child_count < FILE_CHILDREN_MAX; }

void count_file_child(pid_t pid) { file_children[file_child_count++] = pid; }

pid_t fork_child(void) {
  pid_t pid = fork();
  if (pid != 0) return pid;
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  return 0;
}

static void forget_file_child(pid_t pid) {
  for (size_t at = 0; at < file_child_count; at++) {
    if (file_children[at] != pid) continue;
    file_children[at] = file_children[--file_child_count];
    return;
  }
}

/* Everything inside ends up as a child of process 1; only some of it is a command. */
static void reap(void) {
  reap_again = true;
  for (int round = 0; round < REAPED_AT_ONCE; round++) {
    int status;
    struct rusage usage;
    pid_t pid = wait4(-1, &status, WNOHANG, &usage);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0 && errno == ECHILD && stopping()) stop_end_at = now_ms();
    if (pid <= 0) {
      reap_again = false;
      return;
    }
    ready_child_reaped(pid, status);
    forget_file_child(pid);
    for (struct command *command = command_first(); command != NULL; command = command->next) {
      if (!command_was(command, pid)) continue;
      command_reaped(command, status, &usage);
      break;
    }
  }
}

static void signal_ready(struct source *source, uint32_t events) {
  (void)events;
  struct signalfd_siginfo info[8];
  ssize_t count = read(source->fd, info, sizeof info);
  for (ssize_t at = 0; at < count / (ssize_t)sizeof info[0]; at++) {
    /* Pid 0 with SI_USER means a sender outside this pid namespace, and a sender outside is never user 0 here. All zero
       means that the kernel had no room to note who sent it, which root inside can bring about. */
    bool outside = info[at].ssi_code == SI_USER && info[at].ssi_pid == 0 && info[at].ssi_uid != 0;
    if (info[at].ssi_signo == SIGTERM && outside) begin_stop(GRACE_DEFAULT_MS);
  }
  reap();
}

static void refuse(int fd) {
  send_error(fd, NULL, "too-many", EMFILE, "accept", "too many connections to this sandbox");
  close(fd);
}

/* Without a free descriptor the spare one is spent to take a connection and turn it away; else the loop would spin on it. */
int accept_connection(int from, bool *refused) {
  int fd = accept4(from, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  *refused = fd < 0 && (errno == EMFILE || errno == ENFILE);
  if (!*refused) return fd;
  close(spare);
  return accept4(from, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

void restore_spare(void) { spare = open("/", O_PATH | O_CLOEXEC); }

static void listener_ready(struct source *source, uint32_t events) {
  (void)events;
  for (int round = 0; round < 16; round++) {
    bool refused;
    int fd = accept_connection(source->fd, &refused);
    if (fd >= 0) {
      bool full = connection_count() >= CONNECTIONS_MAX;
      struct connection *connection = !refused && connection_count() < CONNECTIONS_MAX + REFUSALS_MAX ? connection_open(fd) : NULL;
      if (connection == NULL) refuse(fd);
      else if (full) connection_fail(connection, "too-many", EMFILE, "accept", "too many connections to this sandbox");
      else connection_ready(&connection->source, EPOLLIN); /* the request is mostly there already */
    }
    if (refused) restore_spare();
    if (fd < 0 || refused) return;
  }
}

static void end_when_stopped(int64_t now) {
  if (!stopping()) return;
  if (stop_end_at == 0 && now >= stop_kill_at) {
    kill(-1, SIGKILL);
    stop_end_at = now + 1000;
  }
  reap();
  if (stop_end_at == 0 || now < stop_end_at) return;
  for (struct command *command = command_first(), *next; command != NULL; command = next) {
    next = command->next;
    command_drain(command);
  }
  _exit(0);
}

/* What /proc/meminfo says inside is as old as this at most while commands run. Answers when it is due again, 0: not now. */
static int64_t tell_memory(int64_t now) {
  static int64_t due;
  if (plan->limits == NULL || plan->limits->meminfo < 0 || command_first() == NULL) return 0;
  if (now >= due) {
    limits_tell_memory(plan->limits);
    due = now + MEMORY_TOLD_MS;
  }
  return due;
}

static int wait_time(void) {
  int64_t now = now_ms();
  end_when_stopped(now);
  int64_t nearest = stopping() ? (stop_end_at != 0 ? stop_end_at : stop_kill_at) : 0;
  int64_t told_at = tell_memory(now);
  if (told_at != 0 && (nearest == 0 || told_at < nearest)) nearest = told_at;
  for (struct command *command = command_first(), *next; command != NULL; command = next) {
    next = command->next;
    int64_t at = command_timers(command, now);
    if (at != 0 && (nearest == 0 || at < nearest)) nearest = at;
  }
  if (reap_again) return 0;
  if (nearest == 0) return -1;
  return nearest <= now ? 0 : (int)(nearest - now > 60000 ? 60000 : nearest - now);
}

static void take_signals(void) {
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_SETMASK, &set, NULL);
  signals = (struct source){.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC), .ready = signal_ready};
}

static void begin(void) {
  /* Else ptrace, /proc/1/mem and pidfd_getfd reach process 1 from inside. */
  prctl(PR_SET_DUMPABLE, 0);
  getrlimit(RLIMIT_NOFILE, &descriptors);
  struct rlimit more = descriptors;
  if (more.rlim_cur < DESCRIPTORS_WANTED) {
    more.rlim_cur = more.rlim_max < DESCRIPTORS_WANTED ? more.rlim_max : DESCRIPTORS_WANTED;
    setrlimit(RLIMIT_NOFILE, &more);
  }
  take_signals();
  loop = epoll_create1(EPOLL_CLOEXEC);
  restore_spare();
  listener = (struct source){.fd = plan->listener, .ready = listener_ready};
  int flags = fcntl(plan->listener, F_GETFL);
  if (loop < 0 || signals.fd < 0 || flags < 0 || fcntl(plan->listener, F_SETFL, flags | O_NONBLOCK) != 0) _exit(70);
  if (source_watch(&signals, EPOLLIN) != 0 || source_watch(&listener, EPOLLIN) != 0) _exit(70);
}

static void listen_inside(void) {
  forwards_listen();
  names_listen();
  aio_listen();
}

void init_main(const struct init_plan *the_plan) {
  plan = the_plan;
  begin();
  ready_child_make(); /* it goes into its groups meanwhile */
  listen_inside();
  if (plan->limits != NULL && plan->limits->meminfo >= 0) limits_tell_memory(plan->limits);
  for (;;) {
    struct epoll_event events[64];
    int count = epoll_wait(loop, events, 64, wait_time());
    if (reap_again) reap();
    for (int at = 0; at < count; at++) {
      struct source *source = events[at].data.ptr;
      if (source->fd >= 0 && source->added) source->ready(source, events[at].events);
    }
    free_retired();
    ready_child_make();
  }
}
