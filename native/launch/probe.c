/* `cell probe`: what this machine lets this user do, tried in a throw-away child. One line a thing: name=ok or name=<errno>. */
#include "launch.h"
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell(const char *name, int result) {
  if (result == 0) printf("%s=ok\n", name);
  else printf("%s=%d\n", name, errno);
  fflush(stdout);
}

static int write_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t written = write(fd, text, strlen(text));
  int saved = errno;
  close(fd);
  errno = saved;
  return written < 0 ? -1 : 0;
}

static int map_self(uid_t uid, gid_t gid) {
  char map[64];
  if (write_file("/proc/self/setgroups", "deny") != 0) return -1;
  snprintf(map, sizeof map, "%u %u 1", uid, uid);
  if (write_file("/proc/self/uid_map", map) != 0) return -1;
  snprintf(map, sizeof map, "%u %u 1", gid, gid);
  return write_file("/proc/self/gid_map", map);
}

/* An overlay on a tmpfs, with the options the launcher uses for this kind of user. */
static int try_overlay(bool root) {
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return -1;
  if (mount("tmpfs", "/tmp", "tmpfs", 0, NULL) != 0) return -1;
  for (size_t i = 0; i < 4; i++) {
    static const char *const folders[] = {"/tmp/lower", "/tmp/upper", "/tmp/work", "/tmp/merged"};
    if (mkdir(folders[i], 0755) != 0) return -1;
  }
  const char *options = root ? "lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work,index=off,redirect_dir=on"
                             : "lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work,userxattr";
  return mount("overlay", "/tmp/merged", "overlay", 0, options);
}

/* Each try in a child of its own, so that none changes what the next one finds. */
static void in_child(void (*try)(void)) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    try();
    _exit(0);
  }
  if (pid > 0) waitpid(pid, NULL, 0);
}

static void try_root(void) {
  int result = unshare(CLONE_NEWNS);
  tell("mount-namespace", result);
  if (result == 0) tell("overlay", try_overlay(true));
}

static void try_user(void) {
  uid_t uid = getuid();
  gid_t gid = getgid();
  int result = unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS);
  tell("user-namespace", result);
  if (result != 0) return;
  result = map_self(uid, gid);
  tell("user-map", result);
  if (result == 0) tell("user-overlay", try_overlay(false));
}

/* A user namespace with a map, held open by a child that is gone when this returns. */
static int mapped_namespace(void) {
  int ready[2], done[2];
  if (pipe2(ready, O_CLOEXEC) != 0 || pipe2(done, O_CLOEXEC) != 0) return -1;
  pid_t child = fork();
  if (child == 0) {
    char byte = unshare(CLONE_NEWUSER) == 0 ? 1 : 0;
    close(done[1]);
    if (write(ready[1], &byte, 1) == 1) (void)!read(done[0], &byte, 1);
    _exit(0);
  }
  char name[64], byte = 0;
  int fd = -1;
  if (child > 0 && read(ready[0], &byte, 1) == 1 && byte == 1) {
    snprintf(name, sizeof name, "/proc/%d/uid_map", child);
    int result = write_file(name, "0 100000 1");
    snprintf(name, sizeof name, "/proc/%d/gid_map", child);
    if (result == 0) result = write_file(name, "0 100000 1");
    snprintf(name, sizeof name, "/proc/%d/ns/user", child);
    if (result == 0) fd = open(name, O_RDONLY | O_CLOEXEC);
  }
  int saved = errno;
  close(done[1]);
  if (child > 0) waitpid(child, NULL, 0);
  errno = saved;
  return fd;
}

/* The file system of / decides: overlayfs, which containers have there, takes no id map. */
static void try_idmap(void) {
  int tree = call_open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  tell("detached-mounts", tree < 0 ? -1 : 0);
  int userns = tree < 0 ? -1 : mapped_namespace();
  if (userns < 0) return;
  struct mount_attr attributes = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns};
  tell("id-mapped-root", call_mount_setattr(tree, AT_EMPTY_PATH, &attributes));
}

int probe_main(void) {
  if (geteuid() == 0) {
    in_child(try_root);
    in_child(try_idmap);
  }
  in_child(try_user);
  return 0;
}
