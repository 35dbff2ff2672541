/* Carries out one `launch` request in a process of its own. Namespaces and process 1 need no disk: where the request says so, they are
   made before the disk is, and the launcher waits for a second frame. Process 1 gets the same bytes, which let it go on. Meanwhile it makes
   the mounts that lie on no disk. */
#include "launch.h"
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

int failed(struct launch *launch, const char *format, ...) {
  va_list arguments;
  launch->error = errno != 0 ? errno : EIO;
  va_start(arguments, format);
  vsnprintf(launch->step, sizeof launch->step, format, arguments);
  va_end(arguments);
  return -1;
}

/* Raw, because the child is a plain fork in new namespaces: it returns here too. */
static pid_t clone_child(unsigned long flags) {
  return (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
}

static pid_t start_child(struct launch *launch) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return failed(launch, "channel");
  pid_t child = clone_child(CLONE_NEWUSER | CLONE_NEWPID);
  if (child == 0) {
    close(ends[0]);
    launch->channel = ends[1];
    become_init(launch);
  }
  int error = errno;
  close(ends[1]);
  launch->channel = ends[0];
  errno = error;
  return child < 0 ? failed(launch, "namespaces") : child;
}

static int prepare(struct launch *launch) {
  if (make_socket(launch) != 0 || open_folders(launch) != 0) return -1;
  if (make_cgroups(launch) != 0 || open_cgroups(launch) != 0) return -1;
  limits_begin(&launch->limits, launch->range);
  if (!launch->root_mode) return 0;
  if (leave_cgroups(launch) != 0) return -1;
  if (unshare(CLONE_NEWNS) != 0) return failed(launch, "mount namespace");
  if (call_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return failed(launch, "private mounts");
  return become_base(launch);
}

/* The frame comes from the helper, which ends or closes its side where there will be no disk. */
static int await_disk(struct launch *launch, int from, struct fields *disk) {
  struct header header;
  char *payload;
  struct pollfd ends[] = {{.fd = from, .events = POLLIN}, {.fd = launch->channel}};
  while (poll(ends, 2, -1) < 0 && errno == EINTR) continue;
  if (ends[0].revents == 0) {
    launch->message = "process 1 ended before it had a disk";
    errno = ECANCELED;
    return failed(launch, "process 1");
  }
  errno = 0;
  if (receive_frame(from, &header, &payload) != 0) {
    launch->message = "there is no disk for it";
    if (errno == 0) errno = ECANCELED;
    return failed(launch, "disk");
  }
  *disk = (struct fields){.data = payload, .length = header.length};
  if (header.kind == REQUEST && fields_valid(disk)) return 0;
  errno = EPROTO;
  return failed(launch, "disk");
}

static int await_ready(struct launch *launch, const struct fields *disk) {
  struct report report;
  if (give_disk(launch, disk) != 0) return -1;
  if (read_all(launch->channel, &report, sizeof report) != 0) {
    launch->message = "process 1 ended before it was ready";
    return failed(launch, "process 1");
  }
  if (report.error == 0) return 0;
  launch->error = report.error;
  launch->message = report.message; /* a constant: the child is a fork of this very program */
  memcpy(launch->step, report.step, sizeof launch->step);
  launch->step[sizeof launch->step - 1] = '\0';
  return -1;
}

static int stand_up(struct launch *launch, const struct fields *request, int result_fd, pid_t child) {
  struct fields disk = *request;
  if (write_maps(launch, child) != 0 || tell_mapped(launch) != 0) return -1;
  if (field_flag(request, "disk_later") && await_disk(launch, result_fd, &disk) != 0) return -1;
  char *copy = malloc(disk.length + 1);
  if (copy == NULL) return failed(launch, "disk");
  if (parse_disk(launch, &disk, copy) != 0) return -1;
  if (launch->root_mode && (open_sources(launch) != 0 || map_trees(launch, child) != 0 || make_mounts(launch) != 0)) return -1;
  return await_ready(launch, &disk);
}

static int reply(struct launch *launch, int result_fd, pid_t child) {
  struct output output = {0};
  put(&output, "ok", "1");
  put(&output, "pid", "%d", child);
  put(&output, "start", "%lld", (long long)start_time(child));
  if (send_output(result_fd, REPLY, &output) == 0) return 0;
  return failed(launch, "reply");
}

int launch_main(const struct fields *request, int result_fd) {
  static struct launch launch;
  char *copy = malloc(request->length + 1);
  pid_t child = -1;
  if (copy == NULL) return 1;
  signal(SIGPIPE, SIG_IGN);
  umask(0); /* modes are meant as the request says them */
  if (result_fd > 3) syscall(SYS_close_range, 3, result_fd - 1, 0);
  syscall(SYS_close_range, result_fd + 1, ~0u, 0);
  if (parse_launch(&launch, request, copy) == 0 && prepare(&launch) == 0) child = start_child(&launch);
  if (child > 0 && stand_up(&launch, request, result_fd, child) == 0 && reply(&launch, result_fd, child) == 0) return 0;
  if (child > 0) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
  }
  remove_socket(&launch);
  send_error(result_fd, NULL, code_of_errno(launch.error), launch.error, launch.step, launch.message);
  return 1;
}
