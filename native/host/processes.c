/* Process 1 of every sandbox: its end is seen by a pidfd, its exact status when it is our child. */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct process {
  struct source source; /* the pidfd */
  struct process *next;
  pid_t pid, launcher;
  int mounts; /* held since it is being killed; -1 before */
  char *sandbox;
};

static struct process *processes;

/* The start time in clock ticks; false when the process is gone or only waits to be reaped. */
static bool start_time(pid_t pid, uint64_t *start) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return false;
  text[length] = '\0';
  char *name_end = strrchr(text, ')'); /* the name may hold anything, brackets too */
  unsigned long long value;
  char state;
  if (name_end == NULL) return false;
  int count = sscanf(name_end + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &state, &value);
  if (count != 2 || state == 'Z' || state == 'X') return false;
  *start = value;
  return true;
}

/* A pidfd of exactly that process, or -1. */
static int open_process(pid_t pid, uint64_t start) {
  int fd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) return -1;
  uint64_t actual;
  if (start_time(pid, &actual) && actual == start) return fd;
  close(fd);
  errno = ESRCH;
  return -1;
}

static void report_exit(struct process *process, const int *status) {
  struct output event = {0};
  put(&event, "event", "exited");
  put(&event, "sandbox", "%s", process->sandbox);
  put(&event, "pid", "%d", (int)process->pid);
  if (status != NULL) put(&event, "status", "%d", *status);
  else put(&event, "status", "%s", "");
  for (struct process **link = &processes; *link != NULL; link = &(*link)->next) {
    if (*link != process) continue;
    *link = process->next;
    break;
  }
  loop_remove(&process->source);
  if (process->mounts >= 0) thread_close(process->mounts);
  free(process->sandbox);
  free(process);
  channel_event(&event);
}

static void process_ready(struct source *source, uint32_t events) {
  (void)events;
  struct process *process = (struct process *)source;
  int status;
  if (waitpid(process->pid, &status, WNOHANG) == process->pid) {
    report_exit(process, &status);
    return;
  }
  /* A launcher that still runs hands its zombie over when it ends; the status comes with SIGCHLD then. */
  if (process->launcher != 0 && launch_is_running(process->launcher)) {
    loop_remove(&process->source);
    return;
  }
  report_exit(process, NULL);
}

static struct process *known_process(pid_t pid) {
  struct process *process = processes;
  while (process != NULL && process->pid != pid) process = process->next;
  return process;
}

void process_reaped(pid_t pid, int status) {
  struct process *process = known_process(pid);
  if (process != NULL) report_exit(process, &status);
}

static bool watch_process(int pidfd, pid_t pid, const char *sandbox, pid_t launcher) {
  struct process *process = calloc(1, sizeof *process);
  if (process == NULL || (process->sandbox = strdup(sandbox)) == NULL) {
    free(process);
    close(pidfd);
    return false;
  }
  process->source = (struct source){.fd = pidfd, .ready = process_ready};
  process->pid = pid;
  process->mounts = -1;
  process->launcher = launcher;
  process->next = processes;
  processes = process;
  if (loop_add(&process->source, EPOLLIN) == 0) return true;
  processes = process->next;
  close(pidfd);
  free(process->sandbox);
  free(process);
  return false;
}

void process_watch_launched(const struct fields *reply, const char *sandbox, pid_t launcher) {
  int64_t pid;
  if (!field_number(reply, "pid", &pid) || pid <= 0) return;
  int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
  if (pidfd >= 0 && watch_process(pidfd, (pid_t)pid, sandbox, launcher)) return;
  struct process *gone = calloc(1, sizeof *gone);
  if (gone == NULL || (gone->sandbox = strdup(sandbox)) == NULL) abort();
  gone->source.fd = -1;
  gone->pid = (pid_t)pid;
  gone->mounts = -1;
  report_exit(gone, NULL);
}

static bool pid_and_start(const struct fields *request, pid_t *pid, uint64_t *start, struct answer *answer) {
  int64_t number, ticks;
  if (!field_number(request, "pid", &number) || number <= 0 || number > INT32_MAX || !field_number(request, "start", &ticks)) {
    refuse(answer, "bad-request", EINVAL, "request", "pid and start must be numbers");
    return false;
  }
  *pid = (pid_t)number;
  *start = (uint64_t)ticks;
  return true;
}

void process_adopt(const struct fields *request, struct answer *answer) {
  pid_t pid;
  uint64_t start;
  const char *sandbox = required(request, "sandbox", answer);
  if (sandbox == NULL || !pid_and_start(request, &pid, &start, answer)) return;
  int pidfd = open_process(pid, start);
  if (pidfd < 0) {
    refuse(answer, "not-found", ESRCH, "adopt", "no process %d that started at %llu", (int)pid, (unsigned long long)start);
    return;
  }
  if (known_process(pid) != NULL) close(pidfd); /* watched already */
  else if (!watch_process(pidfd, pid, sandbox, 0)) refuse_errno(answer, "adopt", sandbox);
}

/* The kernel takes the mounts of a sandbox apart within the exit of the last process that has them, and that takes longer than all the rest
   of its end. Held here until the process is gone, they are let go by a thread, and the end is told at once. */
static void hold_mounts(struct process *process) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)process->pid);
  if (process->mounts < 0) process->mounts = open(path, O_RDONLY | O_CLOEXEC);
}

void process_kill(const struct fields *request, struct answer *answer) {
  pid_t pid;
  uint64_t start;
  int64_t number;
  if (!pid_and_start(request, &pid, &start, answer)) return;
  if (!field_number(request, "signal", &number) || number < 0 || number > 64) {
    refuse(answer, "bad-request", EINVAL, "request", "signal must be a number from 0 to 64");
    return;
  }
  int pidfd = open_process(pid, start);
  if (pidfd < 0 && errno != ESRCH) {
    refuse_errno(answer, "kill", "pidfd_open");
    return;
  }
  struct process *process = number == SIGKILL ? known_process(pid) : NULL;
  if (pidfd >= 0 && process != NULL) hold_mounts(process);
  int result = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_send_signal, pidfd, (int)number, NULL, 0);
  if (result != 0 && errno == ESRCH) put(&answer->fields, "gone", "1");
  else if (result != 0) refuse_errno(answer, "kill", "pidfd_send_signal");
  if (pidfd >= 0) close(pidfd);
}
