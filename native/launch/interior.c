/* What every sandbox has besides its disk: /proc, /sys, /dev, /run. Made by process 1 in its own mount namespace, while
   the host's /proc is still in sight: without it the kernel refuses a new one. */
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MNT_DETACH 2
#define TERMINALS_MOST "256"
#define QUIET (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

/* Attaches `mount` at `target` below `root`; the descriptor goes on naming the mount. */
int attach(int mount, int root, const char *target) {
  int place = mount < 0 ? -1 : open_target(root, target, true, 0755);
  if (place < 0) return -1;
  int result = call_move_mount(mount, place, "", MOVE_MOUNT_T_EMPTY_PATH);
  int error = errno;
  close(place);
  errno = error;
  return result;
}

/* Shows `source` (below `from`) at `target` (below `to`); what the kernel at hand does not have is left out. The target is looked
   for first: to give up a mount that has no place makes the kernel wait for all processors. */
int show(int from, const char *source, int to, const char *target, unsigned attributes) {
  struct mount_attr attr = {.attr_set = attributes};
  if (faccessat(to, target, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) return 0;
  int copy = call_open_tree(from, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
  if (copy < 0) return errno == ENOENT ? 0 : -1;
  int result = attributes == 0 ? 0 : call_mount_setattr(copy, AT_EMPTY_PATH, &attr);
  if (result == 0) result = call_move_mount(copy, to, target, 0);
  int error = errno;
  close(copy);
  errno = error;
  return result == 0 || error == ENOENT ? 0 : -1;
}

static int make_proc(struct launch *launch, int root) {
  static const char *const readonly[] = {"sys", "irq", "bus", "fs"};
  /* Interrupts are counted per device: a program that reads them sees when a person types. The line that the kernel was booted with
     may hold credentials for the system's first steps. */
  static const char *const empty_files[] = {"kcore", "keys", "kallsyms", "sysrq-trigger", "latency_stats", "timer_list", "sched_debug", "interrupts", "cmdline"};
  static const char *const empty_folders[] = {"scsi", "acpi", "asound"};
  int proc = new_filesystem("proc", (const char *const[]){NULL}, QUIET);
  if (attach(proc, root, "/proc") != 0) return failed(launch, "mount /proc");
  for (size_t i = 0; i < sizeof readonly / sizeof *readonly; i++)
    if (show(proc, readonly[i], proc, readonly[i], QUIET | MOUNT_ATTR_RDONLY) != 0) return failed(launch, "mount /proc/%s", readonly[i]);
  for (size_t i = 0; i < sizeof empty_files / sizeof *empty_files; i++)
    if (show(AT_FDCWD, "/dev/null", proc, empty_files[i], MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY) != 0)
      return failed(launch, "mask /proc/%s", empty_files[i]);
  if (show_memory(launch, root, proc) != 0) return -1;
  for (size_t i = 0; i < sizeof empty_folders / sizeof *empty_folders; i++)
    if (show(root, "sys/empty", proc, empty_folders[i], QUIET | MOUNT_ATTR_RDONLY) != 0)
      return failed(launch, "mask /proc/%s", empty_folders[i]);
  close(proc);
  return 0;
}

/* Processors and memory nodes are what runtimes read to size themselves. Everything else in sysfs describes the machine. */
static int make_sys(struct launch *launch, int root) {
  static const char *const shown[] = {"devices/system/cpu", "devices/system/node"};
  int sys = new_filesystem("tmpfs", (const char *const[]){"mode", "755", "size", "64k", NULL}, QUIET);
  if (attach(sys, root, "/sys") != 0) return failed(launch, "mount /sys");
  mkdirat(sys, "empty", 0555);
  mkdirat(sys, "devices", 0755);
  mkdirat(sys, "devices/system", 0755);
  for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
    char host[64];
    snprintf(host, sizeof host, "/sys/%s", shown[i]);
    if (access(host, F_OK) != 0) continue;
    mkdirat(sys, shown[i], 0755);
    if (show(AT_FDCWD, host, sys, shown[i], QUIET | MOUNT_ATTR_RDONLY) != 0) return failed(launch, "mount %s", host);
  }
  if (make_limits(launch, sys) != 0) return -1;
  struct mount_attr readonly = {.attr_set = MOUNT_ATTR_RDONLY};
  if (call_mount_setattr(sys, AT_EMPTY_PATH, &readonly) != 0) return failed(launch, "mount /sys");
  close(sys);
  return 0;
}

static int make_nodes(struct launch *launch, int dev) {
  static const char *const nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
    char host[32];
    snprintf(host, sizeof host, "/dev/%s", nodes[i]);
    if (mknodat(dev, nodes[i], S_IFREG | 0666, 0) != 0) return failed(launch, "make %s", host);
    if (show(AT_FDCWD, host, dev, nodes[i], MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC) != 0) return failed(launch, "mount %s", host);
  }
  return 0;
}

static int make_dev(struct launch *launch, int root) {
  static const char *const links[][2] = {
    {"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"},
  };
  int dev = new_filesystem("tmpfs", (const char *const[]){"mode", "755", "size", "4m", NULL}, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  if (attach(dev, root, "/dev") != 0) return failed(launch, "mount /dev");
  if (make_nodes(launch, dev) != 0) return -1;
  for (size_t i = 0; i < sizeof links / sizeof *links; i++)
    if (symlinkat(links[i][0], dev, links[i][1]) != 0) return failed(launch, "make /dev/%s", links[i][1]);
  /* Terminals are counted for the whole machine, so one sandbox may not have them all. Group 5 is tty on every distribution;
     with a single mapped id it does not exist. */
  const char *const options[] = {"ptmxmode", "0666", "mode", "0620", "max", TERMINALS_MOST, launch->root_mode ? "gid" : NULL, "5", NULL};
  int pts = new_filesystem("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  if (attach(pts, dev, "pts") != 0) return failed(launch, "mount /dev/pts");
  /* A memory group charges what lies there to the sandbox; without one a size has to do. */
  bool charged = launch->plan.work_cgroup_count > 0;
  int shm = new_filesystem("tmpfs", (const char *const[]){"mode", "1777", charged ? NULL : "size", "256m", NULL}, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  if (attach(shm, dev, "shm") != 0) return failed(launch, "mount /dev/shm");
  close(pts);
  close(shm);
  close(dev);
  return 0;
}

static int make_run(struct launch *launch, int root) {
  int run = new_filesystem("tmpfs", (const char *const[]){"mode", "755", "size", "64m", NULL}, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  if (attach(run, root, "/run") != 0) return failed(launch, "mount /run");
  if (mkdirat(run, "lock", 0755) != 0 || fchmodat(run, "lock", 01777, 0) != 0) return failed(launch, "make /run/lock");
  close(run);
  return 0;
}

int make_interior(struct launch *launch, const char *where) {
  int root = open(where, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return failed(launch, "open root");
  if (make_sys(launch, root) != 0 || make_proc(launch, root) != 0 || make_dev(launch, root) != 0 || make_run(launch, root) != 0) return -1;
  close(root);
  return 0;
}

/* Its own mounts can be moved only within one namespace, so they wait on a file system that the new root covers. */
int make_interior_ahead(struct launch *launch) {
  if (call_mount("tmpfs", STACK, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=64k,mode=755") != 0) return failed(launch, "place for mounts");
  if ((launch->ahead = open(STACK, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) return failed(launch, "place for mounts");
  return make_interior(launch, STACK);
}

int place_interior(struct launch *launch) {
  static const char *const folders[] = {"/sys", "/proc", "/dev", "/run"};
  int root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return failed(launch, "open root");
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    int mount = openat(launch->ahead, folders[i] + 1, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (attach(mount, root, folders[i]) != 0) return failed(launch, "mount %s", folders[i]);
    close(mount);
  }
  close(root);
  return 0;
}

/* The working directory becomes the root; the old root ends up stacked on it and is detached. */
int enter_root(struct launch *launch) {
  if (syscall(SYS_pivot_root, ".", ".") != 0) return failed(launch, "pivot_root");
  if (syscall(SYS_umount2, ".", MNT_DETACH) != 0) return failed(launch, "detach old root");
  if (chdir("/") != 0) return failed(launch, "enter root");
  return 0;
}

/* After the mounts that need places in it. The kernel refuses a path that is no mount, so nothing is left open by mistake. */
int close_system(struct launch *launch) {
  struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};
  for (size_t i = 0; i < launch->read_only_count; i++) {
    int fd = open(launch->read_only[i], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || call_mount_setattr(fd, AT_EMPTY_PATH, &attributes) != 0) return failed(launch, "read-only %.120s", launch->read_only[i]);
    close(fd);
  }
  return 0;
}
