#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct watch *watches;

static struct watch **find(const char *key) {
  struct watch **link = &watches;
  while (*link != NULL && strcmp((*link)->key, key) != 0) link = &(*link)->next;
  return link;
}

bool watch_skips(const struct watch *watch, const char *folder) {
  for (size_t index = 0; index < watch->skip_count; index++) {
    size_t length = strlen(watch->skips[index]);
    if (strncmp(folder, watch->skips[index], length) == 0 && (folder[length] == '\0' || folder[length] == '/')) return true;
  }
  return false;
}

static size_t place(const struct watch *watch, const char *folder) {
  size_t hash = 5381;
  for (const char *at = folder; *at != '\0'; at++) hash = hash * 33 ^ (unsigned char)*at;
  size_t at = hash & (watch->dirty_room - 1);
  while (watch->dirty[at] != NULL && strcmp(watch->dirty[at], folder) != 0) at = (at + 1) & (watch->dirty_room - 1);
  return at;
}

static void forget_dirty(struct watch *watch) {
  for (size_t index = 0; index < watch->dirty_room; index++) free(watch->dirty[index]);
  free(watch->dirty);
  watch->dirty = NULL;
  watch->dirty_room = watch->dirty_count = watch->dirty_bytes = 0;
}

static void grow(struct watch *watch) {
  struct watch larger = *watch;
  larger.dirty_room = watch->dirty_room == 0 ? 64 : watch->dirty_room * 2;
  larger.dirty = calloc(larger.dirty_room, sizeof *larger.dirty);
  if (larger.dirty == NULL) abort();
  for (size_t index = 0; index < watch->dirty_room; index++)
    if (watch->dirty[index] != NULL) larger.dirty[place(&larger, watch->dirty[index])] = watch->dirty[index];
  free(watch->dirty);
  watch->dirty = larger.dirty;
  watch->dirty_room = larger.dirty_room;
}

void watch_dirty(struct watch *watch, const char *folder) {
  if (watch->too_many || watch_skips(watch, folder)) return;
  if (watch->dirty_count * 2 >= watch->dirty_room) grow(watch);
  size_t at = place(watch, folder);
  if (watch->dirty[at] != NULL) return;
  size_t bytes = strlen(folder) + sizeof "dirty=";
  if (watch->dirty_count >= DIRTY_MOST || watch->dirty_bytes + bytes > DIRTY_BYTES_MOST) {
    watch->too_many = true;
    forget_dirty(watch);
    return;
  }
  if ((watch->dirty[at] = strdup(folder)) == NULL) abort();
  watch->dirty_count++;
  watch->dirty_bytes += bytes;
}

static void watch_free(struct watch *watch) {
  if (watch->inotify != NULL) inotify_end(watch);
  for (size_t index = 0; index < watch->skip_count; index++) free(watch->skips[index]);
  forget_dirty(watch);
  free(watch->skips);
  free(watch->key);
  free(watch->path);
  if (watch->root >= 0) close(watch->root);
  free(watch);
}

static void read_skips(struct watch *watch, const struct fields *request) {
  watch->skips = calloc(field_count(request, "skip") + 1, sizeof *watch->skips);
  if (watch->skips == NULL) abort();
  for (const char *skip = field(request, "skip"); skip != NULL; skip = field_next(request, "skip", skip)) {
    size_t length = strlen(skip);
    while (length > 0 && skip[length - 1] == '/') length--;
    if (length == 0) continue;
    if ((watch->skips[watch->skip_count++] = strndup(skip, length)) == NULL) abort();
  }
}

void watch_request(const struct fields *request, struct answer *answer) {
  const char *key = required(request, "key", answer), *path = required(request, "path", answer);
  if (answer->failed) return;
  const char *kind = field(request, "kind");
  bool by_inotify = kind != NULL && strcmp(kind, "inotify") == 0;
  struct watch *watch = calloc(1, sizeof *watch);
  if (watch == NULL || (watch->key = strdup(key)) == NULL || (watch->path = strdup(path)) == NULL) abort();
  watch->source.fd = -1;
  watch->root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  read_skips(watch, request);
  if (watch->root < 0) refuse_errno(answer, "watch", path);
  else if (*find(key) != NULL) refuse(answer, "exists", EEXIST, "watch", "%s is watched already", key);
  else if ((by_inotify || fanotify_watch(watch) != 0) && inotify_watch(watch) != 0) {
    if (errno == E2BIG || errno == ENOSPC) refuse(answer, "too-many", errno, "watch", "%s has more folders than can be watched", path);
    else refuse_errno(answer, "watch", path);
  }
  if (answer->failed) {
    watch_free(watch);
    return;
  }
  watch->next = watches;
  watches = watch;
  put(&answer->fields, "kind", "%s", watch->inotify == NULL ? "fanotify" : "inotify");
}

/* A project that was replaced as a whole is another folder: everything is to be compared, and the new one watched. */
static void follow_root(struct watch *watch) {
  struct stat now, then;
  int root = open(watch->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool same = root >= 0 && fstat(root, &now) == 0 && fstat(watch->root, &then) == 0 && now.st_dev == then.st_dev && now.st_ino == then.st_ino &&
              then.st_nlink > 0;
  if (same) {
    close(root);
    return;
  }
  watch->overflow = true;
  if (root < 0) return;
  close(watch->root);
  watch->root = root;
  if (watch->inotify != NULL) inotify_restart(watch);
  else fanotify_watch(watch);
}

void drain_request(const struct fields *request, struct answer *answer) {
  const char *key = required(request, "key", answer);
  struct watch *watch = key == NULL ? NULL : *find(key);
  if (watch == NULL) {
    refuse(answer, "not-found", ENOENT, "drain", "nothing is watched as %s", key == NULL ? "" : key);
    return;
  }
  follow_root(watch);
  if (watch->inotify == NULL) fanotify_drain();
  else inotify_drain(watch);
  put(&answer->fields, "overflow", "%d", watch->overflow);
  if (watch->too_many) put(&answer->fields, "too_many", "1");
  for (size_t index = 0; index < watch->dirty_room; index++)
    if (watch->dirty[index] != NULL) put(&answer->fields, "dirty", "%s", watch->dirty[index]);
  watch->overflow = watch->too_many = false;
  forget_dirty(watch);
}

void unwatch_request(const struct fields *request, struct answer *answer) {
  const char *key = required(request, "key", answer);
  if (key == NULL) return;
  struct watch **link = find(key);
  if (*link == NULL) return;
  struct watch *watch = *link;
  *link = watch->next;
  watch_free(watch);
  bool used = false;
  for (watch = watches; watch != NULL; watch = watch->next) used |= watch->inotify == NULL;
  if (!used) fanotify_end();
}
