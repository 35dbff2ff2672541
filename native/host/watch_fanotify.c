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
#define FOLDERS_MOST 4096
#define TABLE_SIZE (FOLDERS_MOST * 2)
#define SEEN_MOST_AT_REST 64 /* more are looked up at once, so that a drain does not have to */
#define HANDLE_MOST MAX_HANDLE_SZ
#define PAUSE_NANOSECONDS 50000000

/* A folder, anywhere on a marked file system, by its handle. Its path is looked up later: until then it costs a few bytes, however
   often the folder changes. */
struct folder {
  fsid_t system;
  unsigned length;
  struct {
    unsigned bytes;
    int type;
    unsigned char data[HANDLE_MOST];
  } handle;
};

/* In the order they came, and found by a table of their numbers. */
struct folders {
  struct folder *list;      /* FOLDERS_MOST */
  size_t count;
  uint16_t table[TABLE_SIZE]; /* number in the list, counted from 1; 0: free */
};

static struct source group = {.fd = -1}, timer = {.fd = -1};
static struct folders seen;    /* something changed in them */
static struct folders foreign; /* known to lie below no watch, until a folder is moved or a watch is added */

static bool folders_ready(struct folders *folders) {
  if (folders->list == NULL) folders->list = calloc(FOLDERS_MOST, sizeof *folders->list);
  return folders->list != NULL;
}

static void folders_clear(struct folders *folders) {
  if (folders->count > 0) memset(folders->table, 0, sizeof folders->table);
  folders->count = 0;
}

static uint16_t *folders_find(struct folders *folders, const struct folder *folder) {
  size_t hash = 5381;
  for (unsigned at = 0; at < folder->length; at++) hash = hash * 33 ^ ((const unsigned char *)&folder->handle)[at];
  for (size_t at = hash % TABLE_SIZE;; at = (at + 1) % TABLE_SIZE) {
    uint16_t *number = &folders->table[at];
    if (*number == 0) return number;
    const struct folder *other = &folders->list[*number - 1];
    bool same = other->length == folder->length && memcmp(&other->handle, &folder->handle, other->length) == 0;
    if (same && memcmp(&other->system, &folder->system, sizeof other->system) == 0) return number;
  }
}

static bool folders_has(struct folders *folders, const struct folder *folder) { return *folders_find(folders, folder) != 0; }

/* A full list must have been cleared before. */
static void folders_add(struct folders *folders, const struct folder *folder) {
  uint16_t *number = folders_find(folders, folder);
  if (*number != 0) return;
  folders->list[folders->count++] = *folder;
  *number = (uint16_t)folders->count;
}

/* A watch as it is at this moment: its root may be renamed, so its path is read anew. */
struct place {
  struct watch *watch;
  fsid_t system;
  size_t length;
  char path[PATH_MAX];
};

static bool place_of(struct watch *watch, struct place *place) {
  struct statfs status;
  char link[64];
  if (watch->inotify != NULL || fstatfs(watch->root, &status) != 0) return false;
  snprintf(link, sizeof link, "/proc/self/fd/%d", watch->root);
  ssize_t length = readlink(link, place->path, sizeof place->path - 1);
  place->watch = watch;
  place->system = status.f_fsid;
  place->length = length > 0 ? (size_t)length : 0;
  return length > 0;
}

/* The folder's path, as the mount of the place has it. 0: it is removed, which its parent reports as well. */
static size_t path_of(const struct place *place, const struct folder *folder, char *path, size_t room) {
  struct stat status;
  char link[64];
  int fd = open_by_handle_at(place->watch->root, (struct file_handle *)(void *)&folder->handle, O_PATH | O_CLOEXEC);
  if (fd < 0) return 0;
  bool alive = fstat(fd, &status) == 0 && status.st_nlink > 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = alive ? readlink(link, path, room - 1) : -1;
  close(fd);
  if (length <= 0) return 0;
  path[length] = '\0';
  return (size_t)length;
}

/* The part of a path below the place, or NULL. */
static const char *relative_path(const struct place *place, const char *path, size_t length) {
  if (place->length == 1) return length == 1 ? "." : path + 1;
  if (length < place->length || memcmp(path, place->path, place->length) != 0) return NULL;
  if (length == place->length) return ".";
  return path[place->length] == '/' ? path + place->length + 1 : NULL;
}

enum whose { REMOVED, FOREIGN, WATCHED };

static enum whose resolve_at(const struct place *place, const struct folder *folder) {
  static char path[PATH_MAX];
  size_t length = path_of(place, folder, path, sizeof path);
  const char *below = length == 0 ? NULL : relative_path(place, path, length);
  if (below == NULL) return length == 0 ? REMOVED : FOREIGN;
  watch_dirty(place->watch, below);
  return WATCHED;
}

/* Gives what was seen to the watches it belongs to. What belongs to none is not looked up again. */
static void resolve(void) {
  static struct place place;
  static bool kept[FOLDERS_MOST];
  memset(kept, 0, seen.count);
  for (struct watch *watch = watches; watch != NULL && seen.count > 0; watch = watch->next) {
    if (!place_of(watch, &place)) continue;
    for (size_t index = 0; index < seen.count; index++) {
      const struct folder *folder = &seen.list[index];
      if (memcmp(&folder->system, &place.system, sizeof place.system) != 0) continue;
      if (resolve_at(&place, folder) != FOREIGN) kept[index] = true;
    }
  }
  for (size_t index = 0; index < seen.count; index++) {
    if (kept[index]) continue;
    if (foreign.count == FOLDERS_MOST) folders_clear(&foreign);
    folders_add(&foreign, &seen.list[index]);
  }
  folders_clear(&seen);
}

static void remember(const struct fanotify_event_info_fid *info) {
  const struct file_handle *handle = (const void *)info->handle;
  struct folder folder = {.system = {{info->fsid.val[0], info->fsid.val[1]}}, .length = (unsigned)sizeof *handle + handle->handle_bytes};
  if (handle->handle_bytes > HANDLE_MOST) return;
  memcpy(&folder.handle, handle, folder.length);
  if (folders_has(&foreign, &folder)) return;
  if (seen.count == FOLDERS_MOST) resolve();
  folders_add(&seen, &folder);
}

static void take(const char *start, const struct fanotify_event_metadata *event) {
  if (event->mask & FAN_Q_OVERFLOW) {
    for (struct watch *watch = watches; watch != NULL; watch = watch->next) watch->overflow |= watch->inotify == NULL;
    folders_clear(&foreign); /* a move may be among what is lost */
    return;
  }
  /* With a folder, all that is below it comes to lie elsewhere. */
  const uint64_t moved = FAN_ONDIR | FAN_MOVED_TO;
  if ((event->mask & moved) == moved) folders_clear(&foreign);
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

/* While the queue waits, equal events become one: a busy writer elsewhere wakes us at most this often. Out of the loop, because a
   descriptor in it wakes us with every event, also where none is asked for. */
static void group_ready(struct source *source, uint32_t events) {
  (void)source;
  (void)events;
  struct itimerspec pause = {.it_value.tv_nsec = PAUSE_NANOSECONDS};
  read_queue();
  if (seen.count > SEEN_MOST_AT_REST) resolve();
  if (timerfd_settime(timer.fd, 0, &pause, NULL) == 0) loop_leave(&group);
}

static void timer_ready(struct source *source, uint32_t events) {
  (void)events;
  uint64_t times;
  if (read(source->fd, &times, sizeof times) > 0) loop_add(&group, EPOLLIN);
}

void fanotify_drain(void) {
  read_queue();
  resolve();
}

static int open_group(void) {
  if (group.fd >= 0) return 0;
  if (!folders_ready(&seen) || !folders_ready(&foreign)) return -1;
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
  folders_clear(&foreign);
  /* A mark that is there already stays; marks go when the last watch ends. */
  return (int)syscall(SYS_fanotify_mark, group.fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, (uint64_t)EVENTS, watch->root, ".");
}
