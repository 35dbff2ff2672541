/* Looks at everything once more before a change counts: what is in place is what was staged, what was taken is what was expected.
   Writes down how the replaced files were, so that an undo can bring them back. */
#include "apply.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* Files of the state folder. */
struct notes {
  FILE *taken, *links;
};

/* Something may be in place of what was deleted: a folder that was made there. */
static void verify_absent(struct apply *apply, const struct apply_entry *entry) {
  const char *name;
  struct stat status;
  int parent = apply_parent(apply, entry->path, &name);
  if (parent < 0) return;
  if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(status.st_mode))
    apply_conflict(apply, "conflict", "is there already", entry->path);
  close(parent);
}

static void verify_present(struct apply *apply, const struct apply_entry *entry) {
  const char *name;
  int parent = apply_parent(apply, entry->path, &name);
  enum match match = parent < 0 ? FAILED : apply_compare(apply, parent, name, &entry->new);
  if (match == FAILED) apply_obstacle(apply, "verify", entry->path);
  else if (match != SAME) apply_conflict(apply, "conflict", apply_words(match), entry->path);
  else if (apply_inode(parent, name) != entry->inode) apply_conflict(apply, "conflict", apply_words(OTHER), entry->path);
  if (parent >= 0) close(parent);
}

/* A program that had the file open may have written to it since. */
static void verify_taken(struct apply *apply, const struct apply_entry *entry, const char *slot) {
  enum match match = apply_compare(apply, apply->staging, slot, &entry->old);
  if (match == FAILED) refuse_errno(apply->answer, "verify", entry->path);
  else if (match != SAME) apply_conflict(apply, "conflict", apply_words(match), entry->path);
}

/* In `taken`: <mode in octal>|<mtime in nanoseconds>|<path>. In `links`, of files that had other names: <inode>|<number of names>|<path> */
static void write_down(struct apply *apply, const struct apply_entry *entry, const char *slot, const struct notes *notes) {
  struct stat status;
  if (fstatat(apply->staging, slot, &status, AT_SYMLINK_NOFOLLOW) != 0) {
    refuse_errno(apply->answer, "verify", entry->path);
    return;
  }
  fprintf(notes->taken, "%o%c%" PRId64 "%c%s", (unsigned)status.st_mode & 07777, PART, apply_nanoseconds(status.st_mtim), PART, entry->path);
  fputc('\0', notes->taken);
  if (!S_ISREG(status.st_mode) || status.st_nlink < 2) return;
  fprintf(notes->links, "%" PRIu64 "%c%" PRIu64 "%c%s", (uint64_t)status.st_ino, PART, (uint64_t)status.st_nlink, PART, entry->path);
  fputc('\0', notes->links);
}

static bool takes_file(const struct apply_entry *entry) { return entry->kind == TAKE_FILE || entry->kind == CHANGE; }

static void verify_entry(struct apply *apply, struct apply_entry *entry) {
  char slot[SLOT_MAX];
  apply_slot(entry, apply, slot);
  if (entry->kind == TAKE_FILE) verify_absent(apply, entry);
  if (entry->kind == CREATE || entry->kind == CHANGE) verify_present(apply, entry);
  if (takes_file(entry)) verify_taken(apply, entry, slot);
  bool filled = entry->kind == TAKE_FOLDER && apply_inode(apply->staging, slot) != 0 && !apply_empty(apply->staging, slot);
  if (filled) apply_conflict(apply, "conflict", "holds new files", entry->path);
}

static FILE *open_note(struct apply *apply, const char *name) {
  int fd = openat(apply->state, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
  if (file == NULL) refuse_errno(apply->answer, "verify", name);
  return file;
}

static void close_note(struct apply *apply, FILE *file, const char *name) {
  if (file == NULL) return;
  bool written = fflush(file) == 0 && fsync(fileno(file)) == 0;
  if ((fclose(file) != 0 || !written) && !apply->answer->failed) refuse_errno(apply->answer, "verify", name);
}

void apply_verify_entries(struct apply *apply) {
  apply_each(apply, verify_entry);
  struct notes notes = {.taken = open_note(apply, "taken"), .links = open_note(apply, "links")};
  for (size_t index = 0; index < apply->count && !apply->answer->failed; index++) {
    const struct apply_entry *entry = &apply->entries[index];
    char slot[SLOT_MAX];
    apply_slot(entry, apply, slot);
    if (takes_file(entry)) write_down(apply, entry, slot, &notes);
  }
  close_note(apply, notes.taken, "taken");
  close_note(apply, notes.links, "links");
}
