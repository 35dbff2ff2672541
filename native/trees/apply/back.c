/* Brings a change back that was carried out in part. What happened to an entry is told by inodes: whether the staged one is still staged.
   What the user did to a file after it was put there stays, and is reported. */
#include "apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define EXCHANGES_MAX 1000

static const char EDITED[] = "was edited meanwhile; the edit stays";

/* Whether what was taken back is as it was staged. Without the content, its size and time tell. */
static bool untouched(const struct apply *apply, const struct apply_entry *entry, const char *slot) {
  struct stat status;
  enum match match = apply_compare(apply, apply->staging, slot, &entry->new);
  if (match != FAILED) return match == SAME;
  return fstatat(apply->staging, slot, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_size == entry->staged_size &&
         apply_nanoseconds(status.st_mtim) == entry->staged_mtime;
}

static void move_back(struct apply *apply, const struct apply_entry *entry, int parent, const char *name, const char *slot) {
  if (apply_move(apply->staging, slot, parent, name, RENAME_NOREPLACE) == 0) return;
  if (errno != EEXIST) refuse_errno(apply->answer, "back", entry->path);
  else if (entry->kind == TAKE_FILE) apply_conflict(apply, "kept", EDITED, entry->path);
}

/* A created file, or a folder made for it; a folder that holds something by now stays. */
static void withdraw(struct apply *apply, const struct apply_entry *entry, int parent, const char *name, const char *slot) {
  uint64_t present = apply_inode(parent, name);
  bool folder = entry->kind == MAKE_FOLDER;
  if (present != entry->inode) {
    if (present != 0 && !folder) apply_conflict(apply, "kept", EDITED, entry->path);
    return;
  }
  if (folder && !apply_empty(parent, name)) return;
  if (apply_move(parent, name, apply->staging, slot, RENAME_NOREPLACE) != 0) {
    if (errno != ENOENT) refuse_errno(apply->answer, "back", entry->path);
    return;
  }
  if (folder ? apply_empty(apply->staging, slot) : untouched(apply, entry, slot)) return;
  if (!folder) apply_conflict(apply, "kept", EDITED, entry->path);
  if (apply_move(apply->staging, slot, parent, name, RENAME_NOREPLACE) != 0 && errno != EEXIST) refuse_errno(apply->answer, "back", entry->path);
}

/* Which file it is, and in which version; a rename changes neither. */
struct version {
  uint64_t inode;
  int64_t size, mtime;
};

static struct version version_at(int folder, const char *name) {
  struct stat status;
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return (struct version){0};
  return (struct version){status.st_ino, status.st_size, apply_nanoseconds(status.st_mtim)};
}

static bool same_version(struct version left, struct version right) {
  return left.inode == right.inode && left.size == right.size && left.mtime == right.mtime;
}

/* Between a look and an exchange the user may write to the file in place, or put another there: whatever an exchange brings out that is
   not as it was looked at is newer than what it brought in, unless that has been written to since. */
int apply_exchange_back(struct apply *apply, const struct apply_entry *entry, int parent, const char *name, const char *slot) {
  struct version in_place = {entry->inode, entry->staged_size, entry->staged_mtime};
  if (!same_version(version_at(parent, name), in_place)) return 0;
  for (int tries = 0; tries < EXCHANGES_MAX; tries++) {
    struct version staged = version_at(apply->staging, slot);
    if (apply_move(apply->staging, slot, parent, name, RENAME_EXCHANGE) != 0) return errno == ENOENT ? 0 : -1; /* gone: the user's doing */
    if (same_version(version_at(apply->staging, slot), in_place) || !same_version(version_at(parent, name), staged)) return 0;
    in_place = staged;
  }
  return 0;
}

static void exchange_back(struct apply *apply, const struct apply_entry *entry, int parent, const char *name, const char *slot) {
  enum match match = apply_compare(apply, parent, name, &entry->new);
  bool edited = match != SAME && match != FAILED;
  if (!edited && apply_exchange_back(apply, entry, parent, name, slot) != 0) refuse_errno(apply->answer, "back", entry->path);
  else if (edited || apply_inode(apply->staging, slot) != entry->inode) apply_conflict(apply, "kept", EDITED, entry->path);
}

/* A program that opened the file while it was in place may have written to it since. The newer of the two versions stays. */
static void return_edit(struct apply *apply, const struct apply_entry *entry, int parent, const char *name, const char *slot) {
  struct stat staged, present;
  if (fstatat(apply->staging, slot, &staged, AT_SYMLINK_NOFOLLOW) != 0) return;
  bool there = fstatat(parent, name, &present, AT_SYMLINK_NOFOLLOW) == 0;
  apply_conflict(apply, "kept", EDITED, entry->path);
  if (there && apply_nanoseconds(present.st_mtim) >= apply_nanoseconds(staged.st_mtim)) return;
  if (apply_move(apply->staging, slot, parent, name, there ? RENAME_EXCHANGE : RENAME_NOREPLACE) != 0) refuse_errno(apply->answer, "back", entry->path);
}

/* What was written to a staged file that has other names was written through one of those. */
static bool has_other_names(const struct apply *apply, const char *slot) {
  struct stat status;
  return fstatat(apply->staging, slot, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_nlink > 1;
}

static void bring_back(struct apply *apply, const struct apply_entry *entry) {
  char slot[SLOT_MAX];
  const char *name;
  apply_slot(entry, apply, slot);
  uint64_t staged = apply_inode(apply->staging, slot);
  bool taken = entry->kind == TAKE_FILE || entry->kind == TAKE_FOLDER;
  bool done = taken ? staged != 0 : entry->inode != 0 && staged != entry->inode;
  bool edited = !done && entry->new.mode != 0 && !untouched(apply, entry, slot) && !has_other_names(apply, slot);
  if (!done && !edited) return;
  int parent = apply_parent(apply, entry->path, &name);
  if (parent < 0) {
    /* The user took the folder away: what was in it went with it. */
    bool gone = errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
    if (!gone) refuse_errno(apply->answer, "back", entry->path);
    else if (entry->kind != TAKE_FOLDER && entry->kind != MAKE_FOLDER)
      apply_conflict(apply, "kept", "lies in a folder that is gone", entry->path);
    return;
  }
  if (edited) return_edit(apply, entry, parent, name, slot);
  else if (taken) move_back(apply, entry, parent, name, slot);
  else if (entry->kind == CHANGE) exchange_back(apply, entry, parent, name, slot);
  else withdraw(apply, entry, parent, name, slot);
  close(parent);
}

/* Goes on after a failure: the more is back, the better. The answer is the first failure. */
void apply_bring_back(struct apply *apply) {
  for (size_t index = apply->count; index > 0; index--) bring_back(apply, &apply->entries[index - 1]);
}
