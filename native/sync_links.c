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

bool link_to_placed(struct sync *sync, struct folder *folder, const char *name, const struct stat *status) {
  if (sync->placed_room == 0) return false;
  const struct placed *placed = &sync->placed[placed_at(sync, key_of(status))];
  if (placed->key == 0 || placed->print != print_of(status)) return false;
  int target = target_folder(sync, folder);
  /* A file system's bound on names of one file, or a name removed since: then it is copied. */
  return target >= 0 && linkat(sync->target, placed->path, target, name, 0) == 0;
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
      if (!(entry->flags & LINKED)) continue;
      if (sync->mate_count == room) {
        room = room == 0 ? 256 : room * 2;
        sync->mates = realloc(sync->mates, room * sizeof *sync->mates);
        if (sync->mates == NULL) abort();
      }
      sync->mates[sync->mate_count++] = (struct mate){.key = entry->key, .folder = slot->block->path};
    }
  }
  if (sync->mate_count > 0) qsort(sync->mates, sync->mate_count, sizeof *sync->mates, by_key);
}

/* A watch reports the folder through which a file was changed; its other names changed just as well. */
void link_visit_mates(struct sync *sync, uint64_t key, const char *folder) {
  if (sync->everything || key == 0) return;
  if (!sync->mates_known) find_mates(sync);
  size_t low = 0, high = sync->mate_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (sync->mates[middle].key < key) low = middle + 1;
    else high = middle;
  }
  for (; low < sync->mate_count && sync->mates[low].key == key; low++)
    if (strcmp(sync->mates[low].folder, folder) != 0) visit_later(sync, sync->mates[low].folder, ".", false, false);
}
