/* Contents of files and links, compared and copied. */
#include "apply.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

static char ours[CHUNK_MAX], theirs[CHUNK_MAX];

/* Bytes read, fewer than wanted only at the end; -1. */
static ssize_t fill(int fd, char *buffer) {
  size_t filled = 0;
  while (filled < CHUNK_MAX) {
    ssize_t count = read(fd, buffer + filled, CHUNK_MAX - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    filled += (size_t)count;
  }
  return (ssize_t)filled;
}

static enum match same_bytes(int left, int right) {
  for (;;) {
    ssize_t one = fill(left, ours), other = fill(right, theirs);
    if (one < 0 || other < 0) return FAILED;
    if (one != other || memcmp(ours, theirs, (size_t)one) != 0) return OTHER;
    if (one < (ssize_t)CHUNK_MAX) return SAME;
  }
}

static enum match compare_link(int folder, const char *name, int content) {
  ssize_t length = readlinkat(folder, name, ours, PATH_MAX);
  if (length < 0) return FAILED;
  ssize_t other = fill(content, theirs);
  return other < 0 ? FAILED : other == length && memcmp(ours, theirs, (size_t)length) == 0 ? SAME : OTHER;
}

static enum match compare_file(int folder, const char *name, int content) {
  struct stat now, wanted;
  int file = open_beneath(folder, name, O_RDONLY | O_NONBLOCK);
  if (file < 0) return FAILED;
  enum match result = FAILED;
  if (fstat(file, &now) == 0 && fstat(content, &wanted) == 0)
    result = !S_ISREG(now.st_mode) || now.st_size != wanted.st_size ? OTHER : same_bytes(file, content);
  int error = errno;
  close(file);
  errno = error;
  return result;
}

/* Whether `name` in the folder is what the side says: type, executable or not, bytes. */
enum match apply_compare(const struct apply *apply, int folder, const char *name, const struct apply_side *side) {
  struct stat status;
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? MISSING : FAILED;
  if (S_ISDIR(status.st_mode)) return FOLDER;
  bool link = side->mode == 0120000;
  if (link ? !S_ISLNK(status.st_mode) : !S_ISREG(status.st_mode)) return OTHER;
  if (!link && (status.st_mode & 0100 ? 0100755u : 0100644u) != side->mode) return OTHER;
  int content = openat(apply->contents, side->id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (content < 0) return FAILED;
  enum match result = link ? compare_link(folder, name, content) : compare_file(folder, name, content);
  int error = errno;
  close(content);
  errno = error;
  return result;
}

int apply_copy(int source, int target) {
  struct stat status;
  if (fstat(source, &status) != 0) return -1;
  static bool no_range; /* the first refusal counts for the pair of file systems */
  for (off_t left = status.st_size; left > 0;) {
    ssize_t count = 0;
    if (!no_range) {
      count = copy_file_range(source, NULL, target, NULL, (size_t)left, 0);
      if (count < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG)) return -1;
      no_range = count < 0;
    }
    if (count <= 0) count = sendfile(target, source, NULL, (size_t)left);
    if (count == 0) errno = EIO; /* it became shorter */
    if (count <= 0) return -1;
    left -= count;
  }
  return 0;
}
