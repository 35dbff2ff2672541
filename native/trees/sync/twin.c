/* A second tree that looked like the target before, and gets every change that the target gets, from the target: what reality is by
   then does not count. It is given up at the first thing that can't be done alike, and then is no longer like any tree. */
#include "sync.h"
#include "copy.h"

#include <fcntl.h>
#include <unistd.h>

static bool is_kept(const struct sync *sync) { return sync->twin >= 0 && !sync->twin_lost; }

void twin_lose(struct sync *sync) { sync->twin_lost = true; }

static int twin_folder(struct sync *sync, struct folder *folder) {
  if (!is_kept(sync)) return -1;
  if (folder->twin < 0) folder->twin = open_beneath(sync->twin, folder->path, O_RDONLY | O_DIRECTORY);
  if (folder->twin < 0) twin_lose(sync);
  return folder->twin;
}

void twin_remove(struct sync *sync, struct folder *folder, const char *name) {
  int twin = twin_folder(sync, folder);
  if (twin >= 0 && remove_at(twin, name) != 0) twin_lose(sync);
}

void twin_make_folder(struct sync *sync, struct folder *folder, const char *name) {
  int twin = twin_folder(sync, folder);
  if (twin >= 0 && mkdirat(twin, name, 0700) != 0) twin_lose(sync);
}

void twin_copy(struct sync *sync, struct folder *folder, const char *name, bool over) {
  int twin = twin_folder(sync, folder);
  struct stat status;
  if (twin < 0) return;
  if (--sync->twin_files < 0 || fstatat(folder->target, name, &status, AT_SYMLINK_NOFOLLOW) != 0) twin_lose(sync);
  else if (S_ISLNK(status.st_mode)) {
    if (copy_link(folder->target, twin, name, &status) != COPIED) twin_lose(sync);
  } else {
    sync->twin_bytes -= status.st_size;
    if (sync->twin_bytes < 0 || copy_frozen(folder->target, twin, name, over, status.st_size) != 0) twin_lose(sync);
  }
}

void twin_link(struct sync *sync, struct folder *folder, const char *path, const char *name) {
  int twin = twin_folder(sync, folder);
  if (twin >= 0 && linkat(sync->twin, path, twin, name, 0) != 0) twin_lose(sync);
}

void twin_finish(struct sync *sync, const char *path, int target) {
  if (!is_kept(sync)) return;
  struct stat status;
  int twin = open_beneath(sync->twin, path, O_RDONLY | O_DIRECTORY);
  if (twin < 0 || fstat(target, &status) != 0 || copy_metadata(target, twin, &status) != 0) twin_lose(sync);
  if (twin >= 0) close(twin);
}
