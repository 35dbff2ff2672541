/* The groups of a sandbox: those its commands enter, the one process 1 lives in, and where paths of groups begin inside. */
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

static int open_member(const char *cgroup, const char *name, int flags) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s/%s", cgroup, name) >= (int)sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  return open(path, flags | O_CLOEXEC);
}

static int set_value(const char *file, const char *value) {
  int fd = open(file, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t written = write(fd, value, strlen(value));
  int error = errno;
  close(fd);
  errno = error;
  return written < 0 ? -1 : 0;
}

/* A group that is there already is one of another sandbox, or was left over with its limits. */
int make_cgroups(struct launch *launch) {
  for (size_t i = 0; i < launch->new_cgroup_count; i++)
    if (mkdir(launch->new_cgroups[i], 0755) != 0) return failed(launch, "make cgroup %.120s", launch->new_cgroups[i]);
  for (size_t i = 0; i < launch->group_value_count; i++) {
    const char *file = launch->group_values[i].file;
    if (set_value(file, launch->group_values[i].value) == 0 || (errno == ENOENT && launch->group_values[i].optional)) continue;
    return failed(launch, "limit %.120s", file);
  }
  return 0;
}

/* A process that moves itself through `tasks` of a v1 hierarchy takes no lock but the hierarchy's own; through
   cgroup.procs, all forks of the machine wait until every processor has passed a quiet point. v2 has only the latter. */
static int open_procs(const char *cgroup) {
  int tasks = open_member(cgroup, "tasks", O_WRONLY);
  return tasks >= 0 || errno != ENOENT ? tasks : open_member(cgroup, "cgroup.procs", O_WRONLY);
}

/* How much memory the sandbox uses is asked of the group that counts it; the old kind has another name for it. */
static void open_usage(struct shown_limits *limits, const char *cgroup) {
  limits->usage = open_member(cgroup, "memory.usage_in_bytes", O_RDONLY);
  if (limits->usage < 0) limits->usage = open_member(cgroup, "memory.current", O_RDONLY);
  limits->statistics = open_member(cgroup, "memory.stat", O_RDONLY);
}

/* The kernel judges a move into a cgroup by who opened cgroup.procs, so these are opened while still being the caller:
   then commands can be moved later by a process that has no right of its own to do so. */
int open_cgroups(struct launch *launch) {
  for (size_t i = 0; i < launch->work_cgroup_count; i++) {
    launch->work_fds[i] = open_procs(launch->work_cgroups[i]);
    if (launch->work_fds[i] < 0) return failed(launch, "cgroup %.120s", launch->work_cgroups[i]);
  }
  if (launch->memory_cgroup != NULL) open_usage(&launch->limits, launch->memory_cgroup);
  launch->plan.work_cgroups = launch->work_fds;
  launch->plan.work_cgroup_count = launch->work_cgroup_count;
  for (size_t i = 0; i < launch->init_cgroup_count; i++) {
    launch->init_fds[i] = open_procs(launch->init_cgroups[i]);
    if (launch->init_fds[i] < 0) return failed(launch, "cgroup %.120s", launch->init_cgroups[i]);
  }
  return 0;
}

static bool is_shown(const struct launch *launch, const char *cgroup) {
  for (size_t i = 0; i < launch->view_count; i++)
    if (strcmp(launch->views[i].path, cgroup) == 0) return true;
  return false;
}

static int enter_group(struct launch *launch, int group) { return write(group, "0", 1) == 1 ? 0 : failed(launch, "enter cgroup"); }

/* Groups of the old kind are entered and left again, which costs little. */
static int begin_at_old(struct launch *launch) {
  for (size_t i = 0; i < launch->work_cgroup_count; i++)
    if (is_shown(launch, launch->work_cgroups[i]) && enter_group(launch, launch->work_fds[i]) != 0) return -1;
  return unshare(CLONE_NEWCGROUP);
}

static pid_t start_helper(int group, int *pidfd) {
  pid_t parent = getpid();
  struct clone_args arguments = {
    .flags = CLONE_INTO_CGROUP | CLONE_NEWCGROUP | CLONE_PIDFD,
    .exit_signal = SIGCHLD,
    .cgroup = (uint64_t)group,
    .pidfd = (uint64_t)(uintptr_t)pidfd,
  };
  pid_t child = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (getppid() == parent) pause();
  _exit(0);
}

/* To move into a group of the new kind and out of it, all forks of the machine would have to wait, twice. A child that is
   born there waits for nothing: its namespace is taken over. */
static int begin_at_new(struct launch *launch) {
  int pidfd = -1, group = open(launch->work_cgroups[0], O_PATH | O_DIRECTORY | O_CLOEXEC);
  pid_t helper = group < 0 ? -1 : start_helper(group, &pidfd);
  int result = helper < 0 ? -1 : setns(pidfd, CLONE_NEWCGROUP);
  if (helper > 0) {
    kill(helper, SIGKILL);
    waitpid(helper, NULL, 0);
    close(pidfd);
  }
  if (group >= 0) close(group);
  /* Where something around this machine forbids it, runtimes inside find no limit; it holds all the same. */
  return result == 0 ? 0 : unshare(CLONE_NEWCGROUP);
}

static bool is_new_kind(const char *cgroup) {
  struct statfs found;
  return statfs(cgroup, &found) == 0 && found.f_type == CGROUP2_SUPER_MAGIC;
}

/* Inside, the paths of /proc/self/cgroup are to begin at the sandbox's own groups, which runtimes then look for below
   /sys/fs/cgroup: so the namespace is made by a process that is in those groups. Process 1 stays out of them. */
int leave_cgroups(struct launch *launch) {
  bool shown = launch->view_count > 0 && launch->work_cgroup_count > 0;
  int result = !shown ? unshare(CLONE_NEWCGROUP) : is_new_kind(launch->work_cgroups[0]) ? begin_at_new(launch) : begin_at_old(launch);
  if (result != 0) return launch->error != 0 ? -1 : failed(launch, "cgroup namespace");
  for (size_t i = 0; i < launch->init_cgroup_count; i++)
    if (enter_group(launch, launch->init_fds[i]) != 0) return -1;
  return 0;
}
