/* Watching a folder inside, as the user, until the client goes away. */
#include "job.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define PATH_ROOM 8192
#define SEEN (IN_CREATE | IN_CLOSE_WRITE | IN_ATTRIB | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)

struct watch {
  struct job *job;
  int inotify;
  bool recursive;
  char *paths[WATCHES_MOST]; /* by watch descriptor, relative to the request's path; "" for itself */
};

static void send_event(struct watch *watch, const char *event, const char *path, const char *from) {
  struct output output = {0};
  put(&output, "event", "%s", event);
  put(&output, "path", "%s", *path == '\0' ? "." : path);
  if (from != NULL) put(&output, "from", "%s", from);
  job_send(watch->job, EVENT, output.data, output.length);
  output_free(&output);
}

static void join(char *result, size_t size, const char *folder, const char *name) {
  snprintf(result, size, "%s%s%s", folder, *folder == '\0' || *name == '\0' ? "" : "/", name);
}

static bool add(struct watch *watch, const char *relative, bool first);

/* Calls itself by way of add, once a level: so the paths are not on the stack. */
static void add_below(struct watch *watch, DIR *folder, const char *relative, bool first) {
  char *path = malloc(PATH_ROOM);
  if (path == NULL) _exit(1);
  for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    join(path, PATH_ROOM, relative, entry->d_name);
    /* What was made before the watch stood would go unseen. */
    if (!first) send_event(watch, "created", path, NULL);
    if (entry->d_type == DT_DIR && !add(watch, path, first)) break;
  }
  if (folder != NULL) closedir(folder);
  free(path);
}

static bool add(struct watch *watch, const char *relative, bool first) {
  static char full[PATH_ROOM + 4096];
  join(full, sizeof full, watch->job->path, relative);
  uint32_t mask = SEEN | IN_EXCL_UNLINK | (*relative == '\0' ? 0 : IN_ONLYDIR | IN_DONT_FOLLOW);
  int number = strlen(full) < PATH_MAX ? inotify_add_watch(watch->inotify, full, mask) : -1;
  if (number >= WATCHES_MOST) {
    inotify_rm_watch(watch->inotify, number);
    errno = ENOSPC;
    number = -1;
  }
  if (number < 0) {
    /* A limit is told; a folder that is gone or closed to this user is not. */
    if (!first && errno == ENOSPC) send_event(watch, "overflow", relative, NULL);
    return errno != ENOSPC;
  }
  free(watch->paths[number]);
  watch->paths[number] = strdup(relative);
  if (watch->recursive) add_below(watch, opendir(full), relative, first);
  return true;
}

/* Returns how many events it used: a move within the tree is two. */
static size_t translate(struct watch *watch, const struct inotify_event *event, const struct inotify_event *next) {
  char path[PATH_ROOM], other[PATH_ROOM];
  if (event->mask & IN_Q_OVERFLOW) {
    send_event(watch, "overflow", "", NULL);
    return 1;
  }
  if (event->wd < 0 || event->wd >= WATCHES_MOST || watch->paths[event->wd] == NULL) return 1;
  const char *folder = watch->paths[event->wd];
  if (event->mask & (IN_IGNORED | IN_UNMOUNT)) {
    free(watch->paths[event->wd]);
    watch->paths[event->wd] = NULL;
    return 1;
  }
  if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF)) {
    if (*folder == '\0') send_event(watch, "removed", "", NULL);
    return 1;
  }
  join(path, sizeof path, folder, event->len > 0 ? event->name : "");
  bool pair = event->mask & IN_MOVED_FROM && next != NULL && next->mask & IN_MOVED_TO && next->cookie == event->cookie &&
              next->wd >= 0 && next->wd < WATCHES_MOST && watch->paths[next->wd] != NULL;
  if (pair) {
    join(other, sizeof other, watch->paths[next->wd], next->name);
    send_event(watch, "moved", other, path);
    if (next->mask & IN_ISDIR && watch->recursive) add(watch, other, true);
    return 2;
  }
  const char *name = event->mask & (IN_CREATE | IN_MOVED_TO) ? "created" : event->mask & (IN_DELETE | IN_MOVED_FROM) ? "removed" : "changed";
  send_event(watch, name, path, NULL);
  if (event->mask & (IN_CREATE | IN_MOVED_TO) && event->mask & IN_ISDIR && watch->recursive) add(watch, path, false);
  return 1;
}

static void take_events(struct watch *watch) {
  static char buffer[64 << 10] __attribute__((aligned(8)));
  ssize_t count = read(watch->inotify, buffer, sizeof buffer);
  for (ssize_t at = 0; at < count;) {
    const struct inotify_event *event = (const void *)(buffer + at);
    at += (ssize_t)(sizeof *event + event->len);
    const struct inotify_event *next = at < count ? (const void *)(buffer + at) : NULL;
    if (translate(watch, event, next) == 2) at += (ssize_t)(sizeof *next + next->len);
  }
  flush(watch->job);
}

void file_watch(struct job *job) {
  static struct watch watch;
  watch.job = job;
  watch.recursive = field_flag(job->request, "recursive");
  watch.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (watch.inotify < 0) job_fail(job, errno, "watch", "too-many", NULL);
  struct stat stat;
  if (lstat(job->path, &stat) != 0) job_fail(job, errno, "watch", NULL, NULL);
  errno = 0;
  if (!add(&watch, "", true)) job_fail(job, errno, "watch", "too-many", "the sandbox may not watch more folders");
  if (errno == EACCES && watch.paths[1] == NULL) job_fail(job, errno, "watch", NULL, NULL);
  job_reply(job);
  for (;;) {
    struct pollfd polls[2] = {{.fd = watch.inotify, .events = POLLIN}, {.fd = job->fd, .events = POLLIN | POLLRDHUP}};
    if (poll(polls, 2, -1) < 0 && errno != EINTR) return;
    if (polls[1].revents != 0) return; /* nothing more is ever asked on this connection: it has ended */
    if (polls[0].revents != 0) take_events(&watch);
  }
}
