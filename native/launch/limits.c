/* Where programs inside find the sandbox's limits: files of process 1 over /proc/meminfo and /sys/devices/system/cpu/online,
   and the sandbox's own groups at /sys/fs/cgroup. All of it is read-only inside. */
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define READ_ONLY (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY)
#define FILES "cell"

/* A file on the file system of /sys, made through a mount that never is in sight: the one that is becomes read-only, which
   the kernel refuses while something on it is open to be written. */
static int make_file(int files, const char *name) { return openat(files, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444); }

static int make_files(struct launch *launch, int sys) {
  struct shown_limits *limits = &launch->limits;
  if (limits->memory == 0 && limits->cpus == 0) return 0;
  if (mkdirat(sys, FILES, 0755) != 0) return -1;
  /* It stays open: the end of a mount waits for all processors. */
  limits->files = call_open_tree(sys, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
  if (limits->files < 0) return -1;
  if (limits->memory > 0) limits->meminfo = make_file(limits->files, FILES "/meminfo");
  if (limits->cpus > 0) limits->online = make_file(limits->files, FILES "/online");
  return (limits->memory > 0 && limits->meminfo < 0) || (limits->cpus > 0 && limits->online < 0) ? -1 : 0;
}

/* Controllers that share a hierarchy are called by their own names, too. */
static void link_controllers(int folder, const char *name) {
  for (const char *at = name; strchr(name, ',') != NULL && *at != '\0'; at += strspn(at, ",")) {
    char one[64];
    size_t length = strcspn(at, ",");
    snprintf(one, sizeof one, "%.*s", (int)length, at);
    symlinkat(name, folder, one);
    at += length;
  }
}

/* Each group holds what this sandbox uses and may use, and of processes only those inside have a number there. A group that
   can't be shown is left out: it holds its limit all the same. */
static int show_groups(struct launch *launch, int sys) {
  if (launch->view_count == 0) return 0;
  if (mkdirat(sys, "fs", 0755) != 0 || mkdirat(sys, "fs/cgroup", 0755) != 0) return -1;
  int folder = openat(sys, "fs/cgroup", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return -1;
  for (size_t i = 0; i < launch->view_count; i++) {
    const char *name = launch->views[i].name;
    if (*name == '\0') show(AT_FDCWD, launch->views[i].path, sys, "fs/cgroup", READ_ONLY);
    else if (mkdirat(folder, name, 0755) == 0) {
      link_controllers(folder, name);
      show(AT_FDCWD, launch->views[i].path, folder, name, READ_ONLY);
    }
  }
  close(folder);
  return 0;
}

int make_limits(struct launch *launch, int sys) {
  struct shown_limits *limits = &launch->limits;
  if (show_groups(launch, sys) != 0) return failed(launch, "mount /sys/fs/cgroup");
  if (make_files(launch, sys) != 0) return failed(launch, "make files for limits");
  if (limits->online < 0) return 0;
  if (limits_tell_cpus(limits) != 0 || show(sys, FILES "/online", sys, "devices/system/cpu/online", READ_ONLY) != 0)
    return failed(launch, "mount /sys/devices/system/cpu/online");
  return 0;
}

/* Process 1 writes into it before it hears of a command. */
int show_memory(struct launch *launch, int root, int proc) {
  struct shown_limits *limits = &launch->limits;
  if (limits->meminfo < 0) return 0;
  limits->machine = openat(proc, "meminfo", O_RDONLY | O_CLOEXEC);
  if (limits->machine < 0 || show(root, "sys/" FILES "/meminfo", proc, "meminfo", READ_ONLY) != 0)
    return failed(launch, "mount /proc/meminfo");
  return 0;
}
