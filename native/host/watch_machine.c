/* Whether the names, rights and mounts of the machine are as they were: asked each time that a sandbox is made. The kernel
   keeps the answer in a queue that is read only then, so that a busy folder costs nothing in between. */
#include "host.h"
#include "../trees/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define FOLDERS_MOST 8192
#define LEVELS_MOST 64
/* Contents are not looked at: what is hidden follows from names and rights. What goes away shows nothing. */
#define EVENTS (IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW)

static int queue = -1, mounts = -1;

static void end(void) {
  if (queue >= 0) close(queue);
  if (mounts >= 0) close(mounts);
  queue = mounts = -1;
}

static bool is_skipped(const struct fields *request, const char *path) {
  for (const char *skip = field(request, "skip"); skip != NULL; skip = field_next(request, "skip", skip))
    if (strcmp(path, skip) == 0) return true;
  return false;
}

/* What is not there, or closed to this user, is told by the folder above it. */
static bool is_absent(int error) {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP;
}

/* Watched before it is read, so that what appears meanwhile is either read or told. */
static int watch_levels(const struct fields *request, const char *path, int64_t levels, size_t *count) {
  if (is_skipped(request, path)) return 0;
  if (inotify_add_watch(queue, path, EVENTS) < 0) return is_absent(errno) ? 0 : -1;
  if (++*count > FOLDERS_MOST) {
    errno = E2BIG;
    return -1;
  }
  if (levels <= 1) return 0;
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), result = 0;
  if (fd < 0) return is_absent(errno) ? 0 : -1;
  struct names names = {0};
  if (names_read(fd, &names) != 0) {
    names.count = 0;
    result = -1;
  }
  for (size_t index = 0; index < names.count && result == 0; index++) {
    struct stat status;
    char *below;
    if (fstatat(fd, names.sorted[index], &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(status.st_mode)) continue;
    if (asprintf(&below, "%s/%s", strcmp(path, "/") == 0 ? "" : path, names.sorted[index]) < 0) abort();
    result = watch_levels(request, below, levels - 1, count);
    free(below);
  }
  int error = errno;
  names_free(&names);
  close(fd);
  errno = error;
  return result;
}

static bool read_folder(char *value, const char **path, int64_t *levels) {
  char *parts[2];
  if (split_parts(value, parts, 2) != 2) return false;
  char *stop;
  *path = parts[0];
  *levels = strtoll(parts[1], &stop, 10);
  return **path == '/' && *stop == '\0' && stop != parts[1] && *levels >= 1 && *levels <= LEVELS_MOST;
}

void machine_watch(const struct fields *request, struct answer *answer) {
  size_t count = 0;
  end();
  queue = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  if (queue < 0 || mounts < 0) refuse_errno(answer, "watch", "inotify");
  for (const char *value = field(request, "folder"); value != NULL && !answer->failed; value = field_next(request, "folder", value)) {
    const char *path;
    int64_t levels;
    char *copy = strdup(value);
    if (copy == NULL) abort();
    if (!read_folder(copy, &path, &levels)) refuse(answer, "bad-request", EINVAL, "request", "folder must be a path and a number of levels");
    else if (watch_levels(request, path, levels, &count) != 0) refuse_errno(answer, "watch", path);
    free(copy);
  }
  if (answer->failed) end();
}

/* The kernel queues an event before the system call that caused it returns. */
static bool has_events(void) {
  static char buffer[64 << 10] __attribute__((aligned(8)));
  bool any = false;
  while (read(queue, buffer, sizeof buffer) > 0) any = true;
  return any;
}

/* The kernel counts the changes of the table, and tells each open file of it once. */
static bool has_other_mounts(void) {
  struct pollfd table = {.fd = mounts, .events = POLLPRI};
  return poll(&table, 1, 0) > 0 && (table.revents & (POLLPRI | POLLERR)) != 0;
}

void machine_changed(const struct fields *request, struct answer *answer) {
  (void)request;
  bool changed = queue < 0;
  if (queue >= 0 && has_events()) changed = true;
  if (mounts >= 0 && has_other_mounts()) changed = true;
  put(&answer->fields, "changed", "%d", changed);
}
