/* Names of one file: what comes back gets the names again that it had, instead of a copy for each. */
#include "apply.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES_PARTS 4

/* <number of the entry>|<number of the entry whose file it is, or -1>|<inode>|<path of another name of that file> */
static bool read_twin(struct apply *apply, char *record) {
  char *parts[NAMES_PARTS] = {record};
  for (size_t count = 1; count < NAMES_PARTS; count++) {
    char *separator = strchr(parts[count - 1], PART);
    if (separator == NULL) return false;
    *separator = '\0';
    parts[count] = separator + 1;
  }
  size_t number;
  int64_t like;
  uint64_t inode;
  if (sscanf(parts[0], "%zu", &number) != 1 || sscanf(parts[1], "%" SCNd64, &like) != 1 || sscanf(parts[2], "%" SCNu64, &inode) != 1) return false;
  bool beside = parts[3][0] != '\0';
  if (number >= apply->count || like >= (int64_t)number || (beside && !apply_path_allowed(parts[3]))) return false;
  struct apply_entry *entry = &apply->entries[number];
  entry->like = like < 0 ? NULL : &apply->entries[like];
  entry->beside = beside ? parts[3] : NULL;
  entry->beside_inode = inode;
  return true;
}

bool apply_read_twins(struct apply *apply) {
  size_t length;
  apply->twins = apply_read_text(apply->state, "twins", &length);
  if (apply->twins == NULL && errno == ENOENT) return true;
  if (apply->twins == NULL) refuse_errno(apply->answer, "list", "twins");
  for (char *at = apply->twins; apply->twins != NULL && at < apply->twins + length;) {
    size_t size = strlen(at);
    if (!read_twin(apply, at)) {
      refuse(apply->answer, "bad-request", EINVAL, "list", "twins is damaged");
      return false;
    }
    at += size + 1;
  }
  return apply->twins != NULL;
}

static bool link_staged(const struct apply *apply, const struct apply_entry *entry, const char *slot) {
  const struct apply_entry *like = entry->like;
  char other[SLOT_MAX];
  if (like == NULL || like->inode == 0 || like->new.mode != entry->new.mode || strcmp(like->new.id, entry->new.id) != 0) return false;
  apply_slot(like, apply, other);
  return linkat(apply->staging, other, apply->staging, slot, 0) == 0;
}

/* The name may be another file's by now, or the file have another content: then it is left alone. */
static bool link_present(const struct apply *apply, const struct apply_entry *entry, const char *slot) {
  const char *name;
  if (entry->beside == NULL) return false;
  int parent = apply_parent(apply, entry->beside, &name);
  if (parent < 0) return false;
  bool linked = apply_inode(parent, name) == entry->beside_inode && linkat(parent, name, apply->staging, slot, 0) == 0;
  close(parent);
  if (!linked) return false;
  if (apply_inode(apply->staging, slot) == entry->beside_inode && apply_compare(apply, apply->staging, slot, &entry->new) == SAME) return true;
  unlinkat(apply->staging, slot, 0);
  return false;
}

bool apply_stage_twin(const struct apply *apply, const struct apply_entry *entry, const char *slot) {
  return link_staged(apply, entry, slot) || link_present(apply, entry, slot);
}
