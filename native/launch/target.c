/* Places inside the new root. What lies there may have been written by an earlier life of the sandbox, so no link is ever
   followed: a link on the way makes the launch fail. */
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int open_inside(int root, const char *path, uint64_t flags) {
  struct open_how how = {.flags = flags | O_PATH | O_CLOEXEC | O_NOFOLLOW, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  int fd;
  do fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
  while (fd < 0 && errno == EAGAIN); /* the kernel asks to try again when something is renamed meanwhile */
  return fd;
}

static int make_place(int folder, const char *name, bool is_folder, mode_t mode) {
  if (is_folder) return mkdirat(folder, name, mode);
  int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0) return -1;
  close(fd);
  return 0;
}

/* Enters `name`, making it when it is not there. */
static int step_into(int folder, const char *name, bool is_folder, mode_t mode) {
  uint64_t flags = is_folder ? O_DIRECTORY : 0;
  int fd = open_inside(folder, name, flags);
  if (fd >= 0 || errno != ENOENT) return fd;
  if (make_place(folder, name, is_folder, mode) != 0) return -1;
  return open_inside(folder, name, flags);
}

/* Returns the folder that holds the last component and where that component begins in `path`. */
static int open_parent(int root, char *path, char **last) {
  int folder = open_inside(root, "/", O_DIRECTORY);
  char *name = path + strspn(path, "/");
  for (;;) {
    size_t length = strcspn(name, "/");
    char *next = name + length + strspn(name + length, "/");
    name[length] = '\0';
    if (strcmp(name, "..") == 0 || *name == '\0') {
      close(folder);
      errno = EINVAL;
      return -1;
    }
    if (*next == '\0') break;
    int deeper = folder < 0 ? -1 : step_into(folder, name, true, 0755);
    if (folder >= 0) close(folder);
    if ((folder = deeper) < 0) return -1;
    name = next;
  }
  *last = name;
  return folder;
}

int open_target(int root, const char *target, bool folder, mode_t mode) {
  int fd = open_inside(root, target, folder ? O_DIRECTORY : 0);
  if (fd >= 0 || errno != ENOENT) return fd;
  char *path = strdup(target), *last;
  if (path == NULL) return -1;
  int parent = open_parent(root, path, &last);
  if (parent >= 0) {
    fd = step_into(parent, last, folder, mode);
    int error = errno;
    close(parent);
    errno = error;
  }
  int error = errno;
  free(path);
  errno = error;
  return fd;
}

/* A link that is there already with the same content is what was asked for. */
int make_link(int root, const char *target, const char *content) {
  char *path = strdup(target), *last, there[4096];
  if (path == NULL) return -1;
  int parent = open_parent(root, path, &last), result = -1;
  if (parent >= 0) {
    result = symlinkat(content, parent, last);
    if (result != 0 && errno == EEXIST) {
      ssize_t length = readlinkat(parent, last, there, sizeof there);
      if (length >= 0 && (size_t)length == strlen(content) && memcmp(there, content, (size_t)length) == 0) result = 0;
      else errno = EEXIST;
    }
  }
  int error = errno;
  if (parent >= 0) close(parent);
  free(path);
  errno = error;
  return result;
}
