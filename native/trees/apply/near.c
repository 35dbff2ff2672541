/* A file without a name yet, of the folder that it will lie in. File systems keep what belongs to a folder together, and search long
   for room where thousands of files come and go in one folder, as they do in the staging folder. */
#include "apply.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

/* An access list that a folder hands on would be one that the file there now may not have. */
static bool hands_on(int folder) {
  return fgetxattr(folder, "system.posix_acl_default", NULL, 0) >= 0 || (errno != ENODATA && errno != EOPNOTSUPP);
}

/* Files of one folder follow each other, so it is opened once for them. */
static int folder_of(struct apply_near *near, const struct apply *apply, const char *path) {
  const char *slash = strrchr(path, '/');
  size_t length = slash == NULL ? 0 : (size_t)(slash - path);
  if (near->path != NULL && near->length == length && memcmp(near->path, path, length) == 0) return near->folder;
  apply_near_close(near);
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%.*s", length == 0 ? 1 : (int)length, length == 0 ? "." : path);
  near->path = path;
  near->length = length;
  near->folder = open_beneath(apply->project, folder, O_RDONLY | O_DIRECTORY);
  if (near->folder >= 0 && hands_on(near->folder)) {
    close(near->folder);
    near->folder = -1;
  }
  return near->folder;
}

int apply_near_create(struct apply_near *near, const struct apply *apply, const char *path) {
  int folder = folder_of(near, apply, path);
  return folder < 0 ? -1 : openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

/* Only root may name a descriptor itself. */
int apply_near_name(int fd, const struct apply *apply, const char *slot) {
  char path[64];
  if (linkat(fd, "", apply->staging, slot, AT_EMPTY_PATH) == 0) return 0;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return linkat(AT_FDCWD, path, apply->staging, slot, AT_SYMLINK_FOLLOW);
}

void apply_near_close(struct apply_near *near) {
  if (near->path != NULL && near->folder >= 0) close(near->folder);
  *near = (struct apply_near){.folder = -1};
}
