/* Removing trees without following a link or entering another mount. */
#include "btrfs.h"
#include "trees.h"
#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SUBVOLUME_ROOT 256
#define DEPTH_MAX 128 /* deeper folders are first moved up, so descriptors and stack stay bounded */

/* Takes immutable and append-only off a file or folder, and read-only off a subvolume. */
static void clear_flags(int parent, const char *name) {
  int path = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (path < 0) return;
  struct stat status;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", path);
  /* Looked at before it is opened: opening a device or a fifo can do things. */
  bool safe = fstat(path, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
  int fd = safe ? open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
  close(path);
  if (fd < 0) return;
  __u64 subvolume;
  if (status.st_ino == SUBVOLUME_ROOT && ioctl(fd, BTRFS_IOC_SUBVOL_GETFLAGS, &subvolume) == 0 && (subvolume & BTRFS_SUBVOL_RDONLY)) {
    subvolume &= ~(__u64)BTRFS_SUBVOL_RDONLY;
    ioctl(fd, BTRFS_IOC_SUBVOL_SETFLAGS, &subvolume);
  }
  int flags;
  if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & (FS_IMMUTABLE_FL | FS_APPEND_FL))) {
    flags &= ~(FS_IMMUTABLE_FL | FS_APPEND_FL);
    ioctl(fd, FS_IOC_SETFLAGS, &flags);
  }
  close(fd);
}

static int unlink_hard(int parent, const char *name, int flags) {
  if (unlinkat(parent, name, flags) == 0 || errno == ENOENT) return 0;
  if (errno != EPERM && errno != EACCES && errno != EROFS) return -1;
  clear_flags(parent, name);
  return unlinkat(parent, name, flags) == 0 || errno == ENOENT ? 0 : -1;
}

static int remove_entry(int top, int parent, const char *name, int depth);

static int empty_folder(int top, int folder, int depth) {
  struct names names = {0};
  int result = names_read(folder, &names);
  for (size_t index = 0; result == 0 && index < names.count; index++) result = remove_entry(top, folder, names.sorted[index], depth);
  int error = errno;
  names_free(&names);
  errno = error;
  return result;
}

/* Moves a folder that lies too deep into the top folder, where the caller finds it in its next round. */
static int lift(int top, int parent, const char *name) {
  static unsigned long counter;
  char lifted[64];
  snprintf(lifted, sizeof lifted, ".lifted-%d-%lu", (int)getpid(), counter++);
  return renameat(parent, name, top, lifted);
}

static int open_for_removal(int parent, const char *name) {
  int fd = open_beneath(parent, name, O_RDONLY | O_DIRECTORY);
  if (fd >= 0 || errno != EACCES) return fd;
  if (fchmodat(parent, name, 0700, AT_SYMLINK_NOFOLLOW) != 0) return -1;
  return open_beneath(parent, name, O_RDONLY | O_DIRECTORY);
}

static int remove_folder(int top, int parent, const char *name, int depth) {
  if (top >= 0 && depth >= DEPTH_MAX && lift(top, parent, name) == 0) return 0;
  int folder = open_for_removal(parent, name);
  if (folder < 0) return errno == ENOENT ? 0 : -1;
  struct stat status;
  if (fstat(folder, &status) == 0 && !(status.st_mode & S_IWUSR)) fchmod(folder, 0700); /* an ordinary user's own folder */
  clear_flags(parent, name);
  int result = 0;
  /* Each round may bring lifted folders, and names that appear meanwhile. */
  for (int round = 0; round < 100000; round++) {
    result = empty_folder(top < 0 ? folder : top, folder, depth + 1);
    if (result == 0) result = unlink_hard(parent, name, AT_REMOVEDIR);
    if (result == 0 || (errno != ENOTEMPTY && errno != EEXIST)) break;
    lseek(folder, 0, SEEK_SET);
  }
  int error = errno;
  close(folder);
  errno = error;
  return result;
}

static int remove_entry(int top, int parent, const char *name, int depth) {
  struct stat status;
  if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? 0 : -1;
  if (!S_ISDIR(status.st_mode)) return unlink_hard(parent, name, 0);
  if (status.st_ino == SUBVOLUME_ROOT && destroy_subvolume(parent, name) == 0) return 0;
  return remove_folder(top, parent, name, depth);
}

int remove_at(int parent, const char *name) { return remove_entry(-1, parent, name, 0); }

void tree_remove(const struct fields *request, struct answer *answer) {
  const char *name, *path = required(request, "path", answer);
  int parent;
  if (path == NULL) return;
  if (!open_parent(path, &parent, &name, answer)) {
    if (answer->error == ENOENT) *answer = (struct answer){0};
    return;
  }
  if (remove_at(parent, name) != 0) refuse_errno(answer, "remove", path);
  close(parent);
}
