/* Compares one folder of reality with its block in the manifest, and carries every difference over. */
#include "sync.h"
#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_captured(const struct entry *entry) { return !(entry->flags & (BIG | UNREADABLE | FOREIGN)); }

/* Forgets a folder that is gone, and counts what was in it. */
static void drop_folder(struct sync *sync, const char *path) {
  struct slot *slot = manifest_find(&sync->manifest, path);
  if (slot == NULL) return;
  manifest_drop(&sync->manifest, slot);
  const struct entry *entry = first_entry(slot->block);
  for (uint32_t index = 0, count = slot->block->count; index < count; index++, entry = next_entry(entry)) {
    char *child = join_path(path, entry->name);
    note_change(sync, 'D', child);
    if (entry->flags & LINKED) link_visit_mates(sync, entry->key, path);
    if (S_ISDIR(entry->mode)) drop_folder(sync, child);
    free(child);
  }
}

static void entry_gone(struct sync *sync, struct folder *folder, const struct entry *entry) {
  char *path = join_path(folder->path, entry->name);
  note_change(sync, 'D', path);
  if (S_ISDIR(entry->mode)) drop_folder(sync, path);
  if (entry->flags & LINKED) link_visit_mates(sync, entry->key, folder->path);
  if (entry->flags & FOREIGN) list_row(sync, &sync->config_rows, "gitconfig", path);
  if (sync->writes && (is_captured(entry) || entry->flags & FOREIGN)) target_remove(sync, folder, entry->name, true);
  free(path);
}

static void describe(struct entry *entry, const struct stat *status) {
  entry->print = print_of(status);
  entry->size = (uint64_t)status->st_size;
  entry->mode = status->st_mode;
  bool linked = S_ISREG(status->st_mode) && status->st_nlink > 1;
  entry->flags = (uint16_t)((entry->flags & ~LINKED) | (linked ? LINKED : 0));
  entry->key = key_of(status);
}

/* Copies a changed or new file or link. False: it is gone again, or failed. */
static bool capture(struct sync *sync, struct folder *folder, const char *name, const char *path, bool over, struct stat *status,
                    struct entry *next) {
  int target = target_folder(sync, folder);
  if (target < 0) return false;
  if ((next->flags & LINKED) && link_to_captured(sync, folder, name, status)) return true;
  bool link = S_ISLNK(status->st_mode);
  enum copied result = link ? copy_link(folder->source, target, name, status) : copy_file(folder->source, target, name, over, status);
  if (result == TARGET_FAILED) refuse_errno(sync->answer, "copy", path);
  if (result == TARGET_FAILED || result == SOURCE_GONE) return false;
  if (result == SOURCE_UNREADABLE) {
    next->flags |= UNREADABLE;
    list_row(sync, &sync->unreadable_rows, "unreadable", path);
    return true;
  }
  twin_copy(sync, folder, name, over);
  describe(next, status);
  if (S_ISREG(status->st_mode)) sync->bytes += (uint64_t)status->st_size;
  if (next->flags & LINKED) link_place(sync, status, path);
  if (result == COPIED_TORN) {
    next->print = 0; /* never equal: the next sync copies it again */
    list_row(sync, &sync->torn_rows, "torn", path);
  }
  return true;
}

/* Whether a changed file gets its new content in its place. What a crash of the machine leaves of that looks whole: the caller says
   that it would throw the tip away. */
static bool is_written_over(const struct sync *sync, const struct entry *old, const struct entry *next) {
  if (!sync->in_place || sync->verify || old == NULL || !is_captured(old)) return false;
  return S_ISREG(old->mode) && S_ISREG(next->mode) && !((old->flags | next->flags) & LINKED);
}

/* Carries a difference over. False: no entry is to be recorded. */
static bool carry_over(struct sync *sync, struct folder *folder, const char *name, const char *path, const struct entry *old, struct stat *status,
                       struct entry *next) {
  note_change(sync, old == NULL ? 'A' : 'M', path);
  if (old != NULL && S_ISDIR(old->mode)) drop_folder(sync, path);
  if (next->flags & LINKED) link_visit_mates(sync, next->key, folder->path);
  if (old != NULL && (old->flags & LINKED) && old->key != next->key) link_visit_mates(sync, old->key, folder->path);
  if (next->flags & FOREIGN) list_row(sync, &sync->config_rows, "gitconfig", path);
  if (!sync->writes) return true;
  bool over = is_written_over(sync, old, next);
  bool was_there = old != NULL && is_captured(old);
  if (next->flags & FOREIGN) {
    if (was_there) target_remove(sync, folder, name, false);
    return target_folder(sync, folder) >= 0; /* the server finds the folder to write it in */
  }
  if (next->flags & BIG) {
    if (was_there) target_remove(sync, folder, name, true);
    return true;
  }
  if ((old != NULL || sync->verify) && !over) target_remove(sync, folder, name, false);
  bool kept = !sync->answer->failed && capture(sync, folder, name, path, over, status, next);
  bool absent = !kept || (next->flags & UNREADABLE);
  if (was_there && absent && !sync->answer->failed) target_remove(sync, folder, name, true);
  return kept;
}

static void examine_file(struct sync *sync, struct folder *folder, const char *name, const struct entry *old, struct stat *status) {
  struct entry next = {0};
  if (folder->git_folder && is_git_config(name)) next.flags = FOREIGN;
  else if (S_ISREG(status->st_mode) && sync->file_limit > 0 && status->st_size > sync->file_limit) next.flags = BIG;
  describe(&next, status);
  note_owner(sync, status);
  bool same = old != NULL && old->print == next.print && (old->flags & ~UNREADABLE) == next.flags;
  if (same && sync->verify && is_captured(old)) same = target_matches(sync, folder, name, status);
  if (same) next.flags = old->flags;
  char *path = same && next.flags == 0 ? NULL : join_path(folder->path, name);
  if (next.flags & BIG) {
    char row[32];
    snprintf(row, sizeof row, "%c%lld", PART, (long long)status->st_size);
    char *sized = malloc(strlen(path) + sizeof row);
    if (sized == NULL) abort();
    list_row(sync, &sync->big_rows, "big", strcat(strcpy(sized, path), row));
    free(sized);
  }
  if (same && (next.flags & FOREIGN)) list_row(sync, &sync->same_config_rows, "gitconfig_same", path);
  if (same && (next.flags & UNREADABLE)) list_row(sync, &sync->unreadable_rows, "unreadable", path);
  if (same || carry_over(sync, folder, name, path, old, status, &next)) block_add(&sync->block, &next, name);
  free(path);
}

static void examine_folder(struct sync *sync, struct folder *folder, const char *name, const struct entry *old, const struct stat *status) {
  /* Mode, owner and times stand in the folder's own block, so that it can be compared without its parent. */
  struct entry next = {.print = key_of(status), .key = key_of(status), .mode = S_IFDIR};
  char *path = join_path(folder->path, name);
  bool empty = is_skipped(sync, path) || (folder->git_folder && (strcmp(name, "hooks") == 0 || is_git_config(name)));
  bool known = old != NULL && S_ISDIR(old->mode);
  if (!known) note_change(sync, old == NULL ? 'A' : 'M', path);
  if (!known && old != NULL && sync->writes) target_remove(sync, folder, name, false);
  bool missing = !known || (sync->verify && !target_matches(sync, folder, name, status));
  if (missing && sync->writes && known) target_remove(sync, folder, name, false);
  if (missing && sync->writes) target_make_folder(sync, folder, name);
  const struct slot *slot = manifest_find(&sync->manifest, path);
  bool all = !known || folder->all || old->key != next.key || slot == NULL || (slot->block->empty == 1) != empty;
  /* A new folder may have got the inode number of the one it replaces; its times tell. */
  bool stale = !all && (slot->block->times != times_of(status) || slot->block->print != print_of_folder(status));
  if (all || stale) visit_later(sync, folder->path, name, all, empty);
  block_add(&sync->block, &next, name);
  free(path);
}

static void examine(struct sync *sync, struct folder *folder, const char *name, const struct entry *old) {
  struct stat status;
  bool there = fstatat(folder->source, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
  bool folder_or_file = there && (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode) || S_ISDIR(status.st_mode));
  if (there && !folder_or_file) ((struct block *)(void *)sync->block.data)->special++;
  bool hooks = there && folder->git_folder && strcmp(name, "hooks") == 0 && !S_ISDIR(status.st_mode);
  if (!folder_or_file || hooks) {
    if (old != NULL) entry_gone(sync, folder, old);
  } else if (S_ISDIR(status.st_mode)) {
    examine_folder(sync, folder, name, old, &status);
  } else {
    examine_file(sync, folder, name, old, &status);
  }
}

/* Both lists are sorted by bytes. */
static void compare_entries(struct sync *sync, struct folder *folder, const struct block *old) {
  const struct entry *entry = old == NULL ? NULL : first_entry(old);
  uint32_t left = old == NULL ? 0 : old->count;
  for (size_t index = 0; (index < sync->names.count || left > 0) && !sync->answer->failed;) {
    const char *name = index < sync->names.count ? sync->names.sorted[index] : NULL;
    int order = name == NULL ? 1 : left == 0 ? -1 : strcmp(name, entry->name);
    if (order > 0) entry_gone(sync, folder, entry);
    else examine(sync, folder, name, order == 0 ? entry : NULL);
    if (order <= 0) index++;
    if (order < 0) continue;
    entry = next_entry(entry);
    left--;
  }
}

/* The names to compare. False: the folder is gone, or it can't be read and stays as it was captured. */
static bool open_source(struct sync *sync, const struct visit *visit, const struct block *old, struct folder *folder, struct stat *self) {
  sync->names.count = 0;
  folder->source = open_beneath(sync->source, visit->path, O_RDONLY | O_DIRECTORY);
  bool read = folder->source >= 0 && (folder->empty || names_read(folder->source, &sync->names) == 0);
  if (read) return fstat(folder->source, self) == 0;
  if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return false;
  bool mount = errno == EXDEV;
  if (mount) list_row(sync, &sync->mount_rows, "mount", visit->path);
  else list_row(sync, &sync->unreadable_rows, "unreadable", visit->path);
  sync->names.count = 0;
  if (old != NULL && !mount) return false;
  return fstatat(sync->source, visit->path, self, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(self->st_mode);
}

static void record(struct sync *sync, struct folder *folder, const struct block *old, const struct stat *self) {
  struct block *block = (void *)sync->block.data;
  note_owner(sync, self);
  block->empty = folder->empty;
  block->print = print_of_folder(self);
  block->times = times_of(self);
  block->key = key_of(self);
  block_end(&sync->block);
  bool changed = old != NULL && old->print != block->print;
  bool same_times = old != NULL && old->times == block->times;
  if (changed) note_change(sync, 'M', folder->path);
  if (sync->writes && (old == NULL || changed || folder->touched || (!same_times && !sync->layer)))
    if (target_folder(sync, folder) >= 0) target_finish_later(sync, folder->path);
  if (sync->answer->failed) return;
  if (old != NULL && old->length == block->length && memcmp(old, block, block->length) == 0) {
    manifest_find(&sync->manifest, folder->path)->scanned = true;
    return;
  }
  struct block *kept = malloc(block->length);
  if (kept == NULL) abort();
  memcpy(kept, block, block->length);
  manifest_put(&sync->manifest, kept);
}

void visit_folder(struct sync *sync, const struct visit *visit) {
  struct slot *slot = manifest_find(&sync->manifest, visit->path);
  if (slot != NULL && slot->scanned) return;
  const struct block *old = slot == NULL ? NULL : slot->block;
  struct folder folder = {.path = visit->path, .source = -1, .target = -1, .twin = -1, .all = visit->all, .empty = visit->empty};
  if (old != NULL && !visit->all) folder.empty = old->empty == 1; /* not reached through its parent, which decides this */
  struct stat self;
  if (open_source(sync, visit, old, &folder, &self)) {
    if (old != NULL && old->key != key_of(&self)) folder.all = true; /* another folder took its name */
    folder.git_folder = sync->git && is_git_folder(sync, visit->path);
    block_begin(&sync->block, visit->path);
    compare_entries(sync, &folder, old);
    if (!sync->answer->failed) record(sync, &folder, old, &self);
  }
  if (folder.source >= 0) close(folder.source);
  if (folder.target >= 0) close(folder.target);
  if (folder.twin >= 0) close(folder.twin);
}
