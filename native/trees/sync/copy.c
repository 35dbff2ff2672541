#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <limits.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define TRIES 3
#define BUFFER (256u << 10)
#define TICK_NANOSECONDS 10000000 /* the coarsest clock tick of a kernel */

enum data { DATA_WHOLE, DATA_SHORT, DATA_UNREADABLE, DATA_UNWRITABLE };

static bool no_clone, no_range; /* the first refusal counts for the pair of file systems */

static bool same_version(const struct stat *left, const struct stat *right) {
  return left->st_size == right->st_size && left->st_mtim.tv_sec == right->st_mtim.tv_sec && left->st_mtim.tv_nsec == right->st_mtim.tv_nsec &&
         left->st_ctim.tv_sec == right->st_ctim.tv_sec && left->st_ctim.tv_nsec == right->st_ctim.tv_nsec;
}

/* Since Linux 6.13 a time that was looked at is never given twice. */
static bool times_are_fine(void) {
  static int fine = -1;
  struct utsname name;
  unsigned major, minor;
  if (fine < 0) fine = uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 && (major > 6 || (major == 6 && minor >= 13));
  return fine == 1;
}

/* A file changed within the current clock tick could change again without a trace: let the tick pass first. */
static void settle(int fd, struct stat *status) {
  struct timespec now;
  if (times_are_fine() || clock_gettime(CLOCK_REALTIME, &now) != 0) return;
  int64_t age = (int64_t)(now.tv_sec - status->st_ctim.tv_sec) * 1000000000 + now.tv_nsec - status->st_ctim.tv_nsec;
  if (age < 0 || age >= TICK_NANOSECONDS) return;
  struct timespec rest = {.tv_nsec = TICK_NANOSECONDS - (long)age};
  nanosleep(&rest, NULL);
  fstat(fd, status);
}

static enum data copy_through_memory(int source, int target, off_t from, off_t to) {
  static char *buffer;
  if (buffer == NULL && (buffer = malloc(BUFFER)) == NULL) abort();
  while (from < to) {
    size_t wanted = (size_t)(to - from) < BUFFER ? (size_t)(to - from) : BUFFER;
    ssize_t count = pread(source, buffer, wanted, from);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return DATA_UNREADABLE;
    if (count == 0) return DATA_SHORT;
    for (ssize_t done = 0; done < count;) {
      ssize_t written = pwrite(target, buffer + done, (size_t)(count - done), from + done);
      if (written < 0 && errno != EINTR) return DATA_UNWRITABLE;
      if (written > 0) done += written;
    }
    from += count;
  }
  return DATA_WHOLE;
}

static enum data copy_range(int source, int target, off_t from, off_t to) {
  while (!no_range && from < to) {
    off_t in = from, out = from;
    ssize_t count = copy_file_range(source, &in, target, &out, (size_t)(to - from), 0);
    if (count < 0 && (errno == ENOSPC || errno == EDQUOT)) return DATA_UNWRITABLE;
    if (count < 0) no_range = true;
    if (count == 0) break; /* some file systems say so for what they can't; reading tells */
    if (count > 0) from += count;
  }
  return copy_through_memory(source, target, from, to);
}

/* The data of the file, holes left out where there are any. */
static enum data copy_data(int source, int target, const struct stat *status) {
  if (status->st_size == 0) return DATA_WHOLE;
  if (!no_clone) {
    if (ioctl(target, FICLONE, source) == 0) return DATA_WHOLE;
    no_clone = errno == EXDEV || errno == EOPNOTSUPP || errno == ENOTTY;
  }
  if (status->st_blocks * 512 >= status->st_size) return copy_range(source, target, 0, status->st_size);
  if (ftruncate(target, 0) != 0) return DATA_UNWRITABLE; /* where a hole is, nothing is written over what was there */
  for (off_t at = 0; at < status->st_size;) {
    off_t start = lseek(source, at, SEEK_DATA);
    if (start < 0 && errno == ENXIO) break;
    off_t end = start < 0 ? status->st_size : lseek(source, start, SEEK_HOLE);
    if (start < 0) start = at; /* a file system that knows no holes */
    if (end < 0 || end > status->st_size) end = status->st_size;
    enum data result = copy_range(source, target, start, end);
    if (result != DATA_WHOLE) return result;
    at = end;
  }
  return ftruncate(target, status->st_size) == 0 ? DATA_WHOLE : DATA_UNWRITABLE;
}

static bool is_users(const char *attribute) { return strncmp(attribute, "user.", 5) == 0; }

static void copy_attributes(int source, int target) {
  static char names[XATTR_LIST_MAX], value[XATTR_SIZE_MAX];
  ssize_t length = flistxattr(source, names, sizeof names);
  for (ssize_t at = 0; at < length; at += (ssize_t)strlen(names + at) + 1) {
    if (!is_users(names + at)) continue;
    ssize_t size = fgetxattr(source, names + at, value, sizeof value);
    if (size >= 0) fsetxattr(target, names + at, value, (size_t)size, 0);
  }
}

static bool same_time(const struct timespec *left, const struct timespec *right) {
  return left->tv_sec == right->tv_sec && left->tv_nsec == right->tv_nsec;
}

/* What is right already is not set again: each setting costs the file system more than a look. */
int copy_metadata(int source, int target, const struct stat *status) {
  struct timespec times[2] = {status->st_atim, status->st_mtim};
  struct stat actual;
  if (fstat(target, &actual) != 0) return -1;
  bool owned = geteuid() != 0 || (actual.st_uid == status->st_uid && actual.st_gid == status->st_gid);
  if (!owned && fchown(target, status->st_uid, status->st_gid) != 0) return -1;
  /* Another owner takes bits of the mode away. */
  if ((!owned || ((actual.st_mode ^ status->st_mode) & 07777) != 0) && fchmod(target, status->st_mode & 07777) != 0) return -1;
  if (source >= 0) copy_attributes(source, target);
  return same_time(&actual.st_mtim, &status->st_mtim) ? 0 : futimens(target, times);
}

static int open_source(int folder, const char *name) {
  int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  int fd = openat(folder, name, flags | O_NOATIME);
  return fd < 0 && errno == EPERM ? openat(folder, name, flags) : fd;
}

static enum copied copy_versions(int source, int target, struct stat *seen) {
  for (int try = 1;; try++) {
    struct stat after;
    settle(source, seen);
    enum data result = copy_data(source, target, seen);
    if (result == DATA_UNWRITABLE) return TARGET_FAILED;
    if (result == DATA_UNREADABLE || fstat(source, &after) != 0) return SOURCE_UNREADABLE;
    if (result == DATA_WHOLE && same_version(seen, &after)) return COPIED;
    *seen = after;
    if (try == TRIES) return COPIED_TORN;
    if (ftruncate(target, 0) != 0) return TARGET_FAILED;
  }
}

static bool has_attributes(int fd) {
  static char names[XATTR_LIST_MAX];
  ssize_t length = flistxattr(fd, names, sizeof names);
  for (ssize_t at = 0; at < length; at += (ssize_t)strlen(names + at) + 1)
    if (is_users(names + at)) return true;
  return length < 0 && errno != ENOTSUP;
}

/* A file that can take new content in its place: with one name, and without attributes that the new one may not have. -1: none. */
static int open_in_place(int folder, const char *name) {
  struct stat status;
  int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return -1;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1 && !has_attributes(fd)) return fd;
  close(fd);
  return -1;
}

/* What writes over a file knows nothing of holes. */
static bool is_sparse(const struct stat *status) { return status->st_blocks * 512 < status->st_size; }

static int open_target(int folder, const char *name, bool over, const struct stat *source) {
  int fd = over && !is_sparse(source) ? open_in_place(folder, name) : -1;
  if (fd >= 0) return fd;
  if (over && unlinkat(folder, name, 0) != 0 && errno != ENOENT) return -1;
  return openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* What was longer before ends where the new content does. */
static int cut(int fd, off_t size) {
  struct stat status;
  if (fstat(fd, &status) != 0) return -1;
  return status.st_size > size ? ftruncate(fd, size) : 0;
}

enum copied copy_file(int source, int target, const char *name, bool over, struct stat *seen) {
  int in = open_source(source, name);
  if (in < 0) return errno == EACCES || errno == EPERM || errno == EIO ? SOURCE_UNREADABLE : SOURCE_GONE;
  enum copied result = SOURCE_GONE;
  int out = -1;
  if (fstat(in, seen) == 0 && S_ISREG(seen->st_mode)) {
    out = open_target(target, name, over, seen);
    result = out < 0 ? TARGET_FAILED : copy_versions(in, out, seen);
  }
  bool copied = result == COPIED || result == COPIED_TORN;
  if (copied && ((over && cut(out, seen->st_size) != 0) || copy_metadata(in, out, seen) != 0)) result = TARGET_FAILED;
  int error = errno;
  if (out >= 0) close(out);
  close(in);
  if (result == SOURCE_UNREADABLE) unlinkat(target, name, 0);
  errno = error;
  return result;
}

int copy_frozen(int source, int target, const char *name, bool over, off_t most) {
  struct stat status;
  int in = openat(source, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), out = -1, result = -1;
  if (in < 0) return -1;
  if (fstat(in, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= most) out = open_target(target, name, over, &(struct stat){0});
  if (out >= 0 && copy_through_memory(in, out, 0, status.st_size) == DATA_WHOLE && (!over || cut(out, status.st_size) == 0))
    result = copy_metadata(in, out, &status);
  if (out >= 0) close(out);
  close(in);
  return result;
}

enum copied copy_link(int source, int target, const char *name, struct stat *seen) {
  char content[PATH_MAX];
  ssize_t length = readlinkat(source, name, content, sizeof content - 1);
  if (length < 0) return SOURCE_GONE;
  content[length] = '\0';
  struct timespec times[2] = {seen->st_atim, seen->st_mtim};
  if (symlinkat(content, target, name) != 0) return TARGET_FAILED;
  if (geteuid() == 0 && fchownat(target, name, seen->st_uid, seen->st_gid, AT_SYMLINK_NOFOLLOW) != 0) return TARGET_FAILED;
  return utimensat(target, name, times, AT_SYMLINK_NOFOLLOW) == 0 ? COPIED : TARGET_FAILED;
}
