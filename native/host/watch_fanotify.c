/* One mark on a whole file system reports every change by folder handle and name, from every process. */
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fanotify.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EVENTS (FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO | FAN_MODIFY | FAN_CLOSE_WRITE | FAN_ATTRIB | FAN_ONDIR)
#define SEEN_MOST 4096
#define HANDLE_MOST MAX_HANDLE_SZ
#define PAUSE_NANOSECONDS 50000000

/* A folder in which something changed, anywhere on a marked file system. Its path is looked up when it is
   asked for: until then it costs a few bytes, however often the folder changes. */
struct seen {
  fsid_t system;
  unsigned length; /* 0: free */
  struct {
    unsigned bytes;
    int type;
    unsigned char data[HANDLE_MOST];
  } handle;
};

static struct source group = {.fd = -1}, timer = {.fd = -1};
static struct seen *seen;
static size_t seen_count;

/* The path of the folder below the watch's root, or NULL. The root's own path is read anew: it may be renamed. */
static const char *relative_path(const struct watch *watch, const struct seen *folder, char *path, size_t room) {
  struct stat status;
  char link[64], root[PATH_MAX];
  int fd = open_by_handle_at(watch->root, (struct file_handle *)(void *)&folder->handle, O_PATH | O_CLOEXEC);
  if (fd < 0) return NULL; /* removed, which its parent reports as well */
  bool alive = fstat(fd, &status) == 0 && status.st_nlink > 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = alive ? readlink(link, path, room - 1) : -1;
  close(fd);
  snprintf(link, sizeof link, "/proc/self/fd/%d", watch->root);
  ssize_t root_length = readlink(link, root, sizeof root - 1);
  if (length <= 0 || root_length <= 0) return NULL;
  path[length] = '\0';
  if (root_length == 1) return length == 1 ? "." : path + 1;
  if (length < root_length || memcmp(path, root, (size_t)root_length) != 0) return NULL;
  if (length == root_length) return ".";
  return path[root_length] == '/' ? path + root_length + 1 : NULL;
}

static bool on_system(const struct watch *watch, const fsid_t *system) {
  struct statfs status;
  return fstatfs(watch->root, &status) == 0 && memcmp(&status.f_fsid, system, sizeof *system) == 0;
}

/* Gives what was seen to the watches it belongs to. */
static void resolve(void) {
  static char path[PATH_MAX];
  for (size_t index = 0; seen_count > 0 && index < SEEN_MOST * 2; index++) {
    if (seen[index].length == 0) continue;
    for (struct watch *watch = watches; watch != NULL; watch = watch->next) {
      if (watch->inotify != NULL || !on_system(watch, &seen[index].system)) continue;
      const char *folder = relative_path(watch, &seen[index], path, sizeof path);
      if (folder != NULL) watch_dirty(watch, folder);
    }
    seen[index].length = 0;
  }
  seen_count = 0;
}

static void remember(const struct fanotify_event_info_fid *info) {
  const struct file_handle *handle = (const void *)info->handle;
  unsigned length = (unsigned)sizeof *handle + handle->handle_bytes;
  if (handle->handle_bytes > HANDLE_MOST) return;
  if (seen_count >= SEEN_MOST) resolve();
  size_t hash = 5381;
  for (unsigned at = 0; at < length; at++) hash = hash * 33 ^ ((const unsigned char *)handle)[at];
  for (size_t at = hash % (SEEN_MOST * 2);; at = (at + 1) % (SEEN_MOST * 2)) {
    struct seen *slot = &seen[at];
    bool same = slot->length == length && memcmp(&slot->handle, handle, length) == 0 && memcmp(&slot->system, &info->fsid, sizeof slot->system) == 0;
    if (same) return;
    if (slot->length != 0) continue;
    slot->length = length;
    memcpy(&slot->handle, handle, length);
    memcpy(&slot->system, &info->fsid, sizeof slot->system);
    seen_count++;
    return;
  }
}

static void take(const char *start, const struct fanotify_event_metadata *event) {
  if (event->mask & FAN_Q_OVERFLOW) {
    for (struct watch *watch = watches; watch != NULL; watch = watch->next) watch->overflow |= watch->inotify == NULL;
    return;
  }
  const char *end = start + event->event_len;
  for (const char *at = start + event->metadata_len; at + sizeof(struct fanotify_event_info_header) <= end;) {
    const struct fanotify_event_info_fid *info = (const void *)at;
    if (info->hdr.len == 0) break;
    if (info->hdr.info_type == FAN_EVENT_INFO_TYPE_DFID_NAME || info->hdr.info_type == FAN_EVENT_INFO_TYPE_DFID) remember(info);
    at += info->hdr.len;
  }
}

/* Reads until the queue is empty: the kernel queues an event before the system call that caused it returns. */
static void read_queue(void) {
  static char buffer[256 << 10] __attribute__((aligned(8)));
  ssize_t length;
  while ((length = read(group.fd, buffer, sizeof buffer)) > 0) {
    struct fanotify_event_metadata event; /* copied: the kernel aligns events to four bytes only */
    for (const char *at = buffer; buffer + length - at >= (ssize_t)sizeof event; at += event.event_len) {
      memcpy(&event, at, sizeof event);
      if (event.event_len < sizeof event) break;
      take(at, &event);
    }
  }
}

/* While the queue waits, equal events become one: a busy writer elsewhere wakes us at most this often. */
static void group_ready(struct source *source, uint32_t events) {
  (void)source;
  (void)events;
  struct itimerspec pause = {.it_value.tv_nsec = PAUSE_NANOSECONDS};
  read_queue();
  if (timerfd_settime(timer.fd, 0, &pause, NULL) == 0) loop_change(&group, 0);
}

static void timer_ready(struct source *source, uint32_t events) {
  (void)events;
  uint64_t times;
  if (read(source->fd, &times, sizeof times) > 0) loop_change(&group, EPOLLIN);
}

void fanotify_drain(void) {
  read_queue();
  resolve();
}

static int open_group(void) {
  if (group.fd >= 0) return 0;
  if (seen == NULL && (seen = calloc(SEEN_MOST * 2, sizeof *seen)) == NULL) return -1;
  unsigned flags = FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME | FAN_CLOEXEC | FAN_NONBLOCK;
  group = (struct source){.fd = (int)syscall(SYS_fanotify_init, flags, O_RDONLY | O_LARGEFILE | O_CLOEXEC), .ready = group_ready};
  if (group.fd < 0) return -1;
  timer = (struct source){.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), .ready = timer_ready};
  if (timer.fd >= 0 && loop_add(&group, EPOLLIN) == 0 && loop_add(&timer, EPOLLIN) == 0) return 0;
  fanotify_end();
  return -1;
}

void fanotify_end(void) {
  loop_remove(&group);
  loop_remove(&timer);
}

int fanotify_watch(struct watch *watch) {
  if (geteuid() != 0 || open_group() != 0) return -1;
  /* A mark that is there already stays; marks go when the last watch ends. */
  return (int)syscall(SYS_fanotify_mark, group.fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, (uint64_t)EVENTS, watch->root, ".");
}
