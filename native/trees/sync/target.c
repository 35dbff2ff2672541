/* Changes to the tip or the layer. The marker stands from before the first change until the manifest is in place. */
#include "sync.h"
#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool begin(struct sync *sync) {
  if (sync->began) return true;
  sync->began = true;
  if (sync->marker == NULL) return true;
  int fd = open(sync->marker, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    refuse_errno(sync->answer, "marker", sync->marker);
    return false;
  }
  close(fd);
  return true;
}

void target_finish_later(struct sync *sync, const char *path) {
  if (sync->unfinished_count == sync->unfinished_room) {
    sync->unfinished_room = sync->unfinished_room == 0 ? 64 : sync->unfinished_room * 2;
    sync->unfinished = realloc(sync->unfinished, sync->unfinished_room * sizeof *sync->unfinished);
    if (sync->unfinished == NULL) abort();
  }
  char *copy = strdup(path);
  if (copy == NULL) abort();
  sync->unfinished[sync->unfinished_count++] = copy;
}

/* A layer gets the folders above a change too. */
static void make_layer_folders(struct sync *sync, const char *path) {
  char *partial = strdup(path);
  if (partial == NULL) abort();
  for (char *slash = partial; strcmp(path, ".") != 0 && slash != NULL;) {
    slash = strchr(slash, '/');
    if (slash != NULL) *slash = '\0';
    if (mkdirat(sync->target, partial, 0700) == 0) target_finish_later(sync, partial);
    else if (errno != EEXIST) refuse_errno(sync->answer, "folder", partial);
    if (slash != NULL) *slash++ = '/';
  }
  free(partial);
}

/* An ordinary user's tip may hold folders its owner must not write: the mode comes back at the end. */
static int open_writable(struct sync *sync, const char *path) {
  int fd = open_beneath(sync->target, path, O_RDONLY | O_DIRECTORY);
  if (fd >= 0 && geteuid() != 0) fchmod(fd, 0700);
  return fd;
}

int target_folder(struct sync *sync, struct folder *folder) {
  if (folder->target >= 0) return folder->target;
  if (!begin(sync)) return -1;
  if (sync->layer) make_layer_folders(sync, folder->path);
  if (sync->answer->failed) return -1;
  folder->target = open_writable(sync, folder->path);
  if (folder->target < 0) refuse_errno(sync->answer, "folder", folder->path);
  folder->touched = true;
  return folder->target;
}

void target_remove(struct sync *sync, struct folder *folder, const char *name, bool for_good) {
  int target = target_folder(sync, folder);
  if (target < 0) return;
  if (remove_at(target, name) != 0) refuse_errno(sync->answer, "remove", name);
  else if (sync->layer && for_good && mknodat(target, name, S_IFCHR, makedev(0, 0)) != 0) refuse_errno(sync->answer, "whiteout", name);
  twin_remove(sync, folder, name);
}

void target_make_folder(struct sync *sync, struct folder *folder, const char *name) {
  int target = target_folder(sync, folder);
  if (target >= 0 && mkdirat(target, name, 0700) != 0 && errno != EEXIST) refuse_errno(sync->answer, "folder", name);
  twin_make_folder(sync, folder, name);
}

bool target_matches(struct sync *sync, struct folder *folder, const char *name, const struct stat *status) {
  struct stat actual;
  char *path = join_path(folder->path, name);
  bool found = fstatat(sync->target, path, &actual, AT_SYMLINK_NOFOLLOW) == 0;
  free(path);
  if (!found || (actual.st_mode & S_IFMT) != (status->st_mode & S_IFMT)) return false;
  if (!S_ISREG(status->st_mode)) return true;
  return actual.st_size == status->st_size && actual.st_mtim.tv_sec == status->st_mtim.tv_sec && actual.st_mtim.tv_nsec == status->st_mtim.tv_nsec;
}

static void finish_folder(struct sync *sync, const char *path) {
  struct stat status;
  int source = open_beneath(sync->source, path, O_RDONLY | O_DIRECTORY);
  int target = open_beneath(sync->target, path, O_RDONLY | O_DIRECTORY);
  /* A mount point and a folder that can't be read have a status all the same; one that vanished is the next sync's. */
  bool known = source >= 0 ? fstat(source, &status) == 0 : fstatat(sync->source, path, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
  if (known && target >= 0 && copy_metadata(source, target, &status) != 0) refuse_errno(sync->answer, "metadata", path);
  if (target >= 0) twin_finish(sync, path, target);
  if (source >= 0) close(source);
  if (target >= 0) close(target);
}

/* Deepest first: work in a folder changes its times, and a mode may shut out an ordinary user. */
static int deeper_first(const void *left, const void *right) { return strcmp(*(char *const *)right, *(char *const *)left); }

void target_finish(struct sync *sync) {
  if (sync->unfinished_count > 0) qsort(sync->unfinished, sync->unfinished_count, sizeof *sync->unfinished, deeper_first);
  for (size_t index = 0; index < sync->unfinished_count && !sync->answer->failed; index++) {
    bool twice = index > 0 && strcmp(sync->unfinished[index], sync->unfinished[index - 1]) == 0;
    if (!twice) finish_folder(sync, sync->unfinished[index]);
  }
}
