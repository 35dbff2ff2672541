/* Contents of files and links, compared and copied. */
#include "apply.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

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

static enum match same_bytes(int file, const struct apply *apply, const struct apply_place *place) {
  struct apply_room *room = apply->room;
  for (int64_t at = 0;; at += CHUNK_MAX) {
    int64_t left = place->size - at;
    ssize_t one = fill(file, room->ours), other = (ssize_t)(left < CHUNK_MAX ? left : CHUNK_MAX);
    if (one < 0 || apply_read_place(apply, place, at, room->theirs, (size_t)other) != 0) return FAILED;
    if (one != other || memcmp(room->ours, room->theirs, (size_t)one) != 0) return OTHER;
    if (one < (ssize_t)CHUNK_MAX) return SAME;
  }
}

static enum match compare_link(int folder, const char *name, const struct apply *apply, const struct apply_place *place) {
  struct apply_room *room = apply->room;
  ssize_t length = readlinkat(folder, name, room->ours, PATH_MAX);
  if (length < 0) return FAILED;
  if (length != place->size) return OTHER;
  if (apply_read_place(apply, place, 0, room->theirs, (size_t)length) != 0) return FAILED;
  return memcmp(room->ours, room->theirs, (size_t)length) == 0 ? SAME : OTHER;
}

static enum match compare_file(int folder, const char *name, const struct apply *apply, const struct apply_place *place) {
  struct stat now;
  int file = open_beneath(folder, name, O_RDONLY | O_NONBLOCK);
  if (file < 0) return FAILED;
  enum match result = FAILED;
  if (fstat(file, &now) == 0) result = !S_ISREG(now.st_mode) || now.st_size != place->size ? OTHER : same_bytes(file, apply, place);
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
  const struct apply_place *place = apply_place_of(apply, side->id);
  if (place == NULL) return FAILED;
  return link ? compare_link(folder, name, apply, place) : compare_file(folder, name, apply, place);
}

int apply_copy(const struct apply *apply, const struct apply_place *place, int target) {
  off_t at = place->offset;
  for (int64_t left = place->size; left > 0;) {
    ssize_t count = 0;
    if (!apply->room->no_range) {
      count = copy_file_range(apply->contents, &at, target, NULL, (size_t)left, 0);
      if (count < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EFBIG)) return -1;
      apply->room->no_range = count < 0;
    }
    if (count <= 0) count = sendfile(target, apply->contents, &at, (size_t)left);
    if (count == 0) errno = EIO; /* it became shorter */
    if (count <= 0) return -1;
    left -= count;
  }
  return 0;
}
