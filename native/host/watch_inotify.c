/* For ordinary users: one watch a folder, up to a bound. */
#include "watch.h"
#include "../trees/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#define FOLDERS_MOST 8192
#define EVENTS (IN_CREATE | IN_DELETE | IN_MOVE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK)

struct inotify {
  char **paths; /* by watch descriptor, relative */
  size_t room, count;
};

static int add_folder(struct watch *watch, const char *folder) {
  struct inotify *inotify = watch->inotify;
  char link[64];
  int fd = open_beneath(watch->root, folder, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV || errno == EACCES ? 0 : -1;
  snprintf(link, sizeof link, "/proc/self/fd/%d/.", fd);
  int number = inotify_add_watch(watch->source.fd, link, EVENTS);
  int error = errno;
  close(fd);
  errno = error;
  if (number < 0) return -1;
  if ((size_t)number >= inotify->room) {
    size_t room = ((size_t)number + 1) * 2;
    char **paths = realloc(inotify->paths, room * sizeof *paths);
    if (paths == NULL) return -1;
    memset(paths + inotify->room, 0, (room - inotify->room) * sizeof *paths);
    inotify->paths = paths;
    inotify->room = room;
  }
  if (inotify->paths[number] == NULL && ++inotify->count > FOLDERS_MOST) {
    errno = E2BIG;
    return -1;
  }
  free(inotify->paths[number]);
  inotify->paths[number] = strdup(folder);
  return inotify->paths[number] == NULL ? -1 : 0;
}

static char *child_path(const char *folder, const char *name) {
  char *path;
  bool top = strcmp(folder, ".") == 0;
  if (asprintf(&path, "%s%s%s", top ? "" : folder, top ? "" : "/", name) < 0) abort();
  return path;
}

/* Watched before it is read, so that what appears meanwhile is either read or reported. */
static int add_tree(struct watch *watch, const char *folder) {
  if (watch_skips(watch, folder)) return 0;
  if (add_folder(watch, folder) != 0) return -1;
  struct names names = {0};
  int fd = open_beneath(watch->root, folder, O_RDONLY | O_DIRECTORY), result = 0;
  if (fd >= 0 && names_read(fd, &names) != 0) names.count = 0;
  for (size_t index = 0; index < names.count && result == 0; index++) {
    struct stat status;
    if (fstatat(fd, names.sorted[index], &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(status.st_mode)) continue;
    char *path = child_path(folder, names.sorted[index]);
    result = add_tree(watch, path);
    free(path);
  }
  int error = errno;
  if (fd >= 0) close(fd);
  names_free(&names);
  errno = error;
  return result;
}

static void inotify_ready(struct source *source, uint32_t events) {
  (void)events;
  inotify_drain((struct watch *)(void *)source);
}

static int start(struct watch *watch) {
  watch->source = (struct source){.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), .ready = inotify_ready};
  if (watch->source.fd < 0 || add_tree(watch, ".") != 0) return -1;
  return loop_add(&watch->source, EPOLLIN);
}

static void stop(struct watch *watch) {
  loop_remove(&watch->source);
  for (size_t index = 0; index < watch->inotify->room; index++) free(watch->inotify->paths[index]);
  free(watch->inotify->paths);
  *watch->inotify = (struct inotify){0};
}

int inotify_watch(struct watch *watch) {
  watch->inotify = calloc(1, sizeof *watch->inotify);
  if (watch->inotify == NULL) return -1;
  return start(watch);
}

/* The paths kept for the folders are not true any more: begin anew and let the server scan. */
void inotify_restart(struct watch *watch) {
  watch->overflow = true;
  stop(watch);
  if (start(watch) != 0) stop(watch); /* then every drain says overflow */
}

static bool take(struct watch *watch, const struct inotify_event *event) {
  if (event->mask & IN_Q_OVERFLOW) return false;
  bool known = event->wd >= 0 && (size_t)event->wd < watch->inotify->room && watch->inotify->paths[event->wd] != NULL;
  if (!known) return true;
  char *folder = watch->inotify->paths[event->wd];
  if (event->mask & IN_IGNORED) {
    free(folder);
    watch->inotify->paths[event->wd] = NULL;
    watch->inotify->count--;
    return true;
  }
  watch_dirty(watch, folder);
  if (!(event->mask & IN_ISDIR) || event->len == 0) return true;
  if (event->mask & IN_MOVE) return false;
  if (!(event->mask & IN_CREATE)) return true;
  char *path = child_path(folder, event->name);
  int result = add_tree(watch, path);
  free(path);
  return result == 0;
}

void inotify_drain(struct watch *watch) {
  static char buffer[64 << 10] __attribute__((aligned(8)));
  if (watch->source.fd < 0) {
    watch->overflow = true;
    return;
  }
  ssize_t length;
  while ((length = read(watch->source.fd, buffer, sizeof buffer)) > 0) {
    for (char *at = buffer; at < buffer + length;) {
      const struct inotify_event *event = (const void *)at;
      at += sizeof *event + event->len;
      if (take(watch, event)) continue;
      inotify_restart(watch);
      return;
    }
  }
}

void inotify_end(struct watch *watch) {
  stop(watch);
  free(watch->inotify);
  watch->inotify = NULL;
}
