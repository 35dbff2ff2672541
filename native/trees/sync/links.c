/* Files with several names: one copy in the target, and names that must be looked at together. */
#include "sync.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t placed_at(const struct sync *sync, uint64_t key) {
  size_t at = key & (sync->placed_room - 1);
  while (sync->placed[at].key != 0 && sync->placed[at].key != key) at = (at + 1) & (sync->placed_room - 1);
  return at;
}

static void placed_grow(struct sync *sync) {
  struct placed *old = sync->placed;
  size_t room = sync->placed_room;
  sync->placed_room = room == 0 ? 256 : room * 2;
  sync->placed = calloc(sync->placed_room, sizeof *sync->placed);
  if (sync->placed == NULL) abort();
  for (size_t index = 0; index < room; index++)
    if (old[index].key != 0) sync->placed[placed_at(sync, old[index].key)] = old[index];
  free(old);
}

void link_place(struct sync *sync, const struct stat *status, const char *path) {
  if (sync->placed_count * 2 >= sync->placed_room) placed_grow(sync);
  struct placed *placed = &sync->placed[placed_at(sync, key_of(status))];
  if (placed->key == 0) sync->placed_count++;
  free(placed->path);
  *placed = (struct placed){.key = key_of(status), .print = print_of(status), .path = strdup(path)};
  if (placed->path == NULL) abort();
}

static int by_key(const void *left, const void *right) {
  uint64_t a = ((const struct mate *)left)->key, b = ((const struct mate *)right)->key;
  return a < b ? -1 : a > b;
}

static void find_mates(struct sync *sync) {
  size_t room = 0;
  sync->mates_known = true;
  for (size_t index = 0; index < sync->manifest.room; index++) {
    const struct slot *slot = &sync->manifest.slots[index];
    if (slot->block == NULL || slot->dropped) continue;
    const struct entry *entry = first_entry(slot->block);
    for (uint32_t at = 0; at < slot->block->count; at++, entry = next_entry(entry)) {
      if (!S_ISREG(entry->mode)) continue; /* also with one name: it may have got its second since */
      if (sync->mate_count == room) {
        room = room == 0 ? 256 : room * 2;
        sync->mates = realloc(sync->mates, room * sizeof *sync->mates);
        if (sync->mates == NULL) abort();
      }
      sync->mates[sync->mate_count++] = (struct mate){.key = entry->key, .folder = slot->block->path, .entry = entry};
    }
  }
  if (sync->mate_count > 0) qsort(sync->mates, sync->mate_count, sizeof *sync->mates, by_key);
}

/* The first of the names with that key in the manifest; the others follow. */
static size_t first_mate(struct sync *sync, uint64_t key) {
  if (!sync->mates_known) find_mates(sync);
  size_t low = 0, high = sync->mate_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (sync->mates[middle].key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* A watch reports the folder through which a file was changed; its other names changed just as well. */
void link_visit_mates(struct sync *sync, uint64_t key, const char *folder) {
  if (sync->everything) return;
  for (size_t at = first_mate(sync, key); at < sync->mate_count && sync->mates[at].key == key; at++)
    if (strcmp(sync->mates[at].folder, folder) != 0) visit_later(sync, sync->mates[at].folder, ".", false, false);
}

/* A name captured earlier is good when reality still has this very version under it. */
static bool link_to_mate(struct sync *sync, struct folder *folder, const char *name, const struct stat *status) {
  uint64_t key = key_of(status), print = print_of(status);
  for (size_t at = first_mate(sync, key); at < sync->mate_count && sync->mates[at].key == key; at++) {
    const struct mate *mate = &sync->mates[at];
    if (mate->entry->print != print || mate->entry->flags != LINKED) continue;
    struct stat actual;
    char *path = join_path(mate->folder, mate->entry->name);
    bool same = fstatat(sync->source, path, &actual, AT_SYMLINK_NOFOLLOW) == 0 && print_of(&actual) == print && key_of(&actual) == key;
    bool linked = same && linkat(sync->target, path, folder->target, name, 0) == 0;
    if (linked) twin_link(sync, folder, path, name);
    free(path);
    if (linked) return true;
  }
  return false;
}

bool link_to_captured(struct sync *sync, struct folder *folder, const char *name, const struct stat *status) {
  int target = target_folder(sync, folder);
  if (target < 0) return false;
  const struct placed *placed = sync->placed_room == 0 ? NULL : &sync->placed[placed_at(sync, key_of(status))];
  bool current = placed != NULL && placed->key != 0 && placed->print == print_of(status);
  /* A bound on the names of one file, or a name removed since, ends in a copy. */
  if (current && linkat(sync->target, placed->path, target, name, 0) == 0) {
    twin_link(sync, folder, placed->path, name);
    return true;
  }
  return !sync->layer && !sync->verify && link_to_mate(sync, folder, name, status);
}
