/* Carries a staged change out. Every rename is atomic and keeps what it displaces, so that any of them can be taken back. */
#include "apply.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

struct place {
  int parent;
  const char *name;
  char slot[SLOT_MAX];
};

static void renamed(const struct apply *apply, const struct apply_entry *entry) {
  if (apply->halt > 0 && (size_t)(entry - apply->entries) + 1 >= apply->halt) raise(SIGKILL);
}

static bool is_folder(int parent, const char *name) {
  struct stat status;
  return fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

/* Where something else has come to the place since, that is the newest and stays. */
static int put_back(struct apply *apply, const struct apply_entry *entry, const struct place *place) {
  if (entry->kind == CHANGE) return apply_exchange_back(apply, entry, place->parent, place->name, place->slot);
  return apply_move(apply->staging, place->slot, place->parent, place->name, RENAME_NOREPLACE) == 0 || errno == EEXIST ? 0 : -1;
}

/* What was displaced must be what the change was made for. Otherwise it goes back at once: the user's bytes are what stays. */
static void compare_displaced(struct apply *apply, const struct apply_entry *entry, const struct place *place) {
  enum match match = apply_compare(apply, apply->staging, place->slot, &entry->old);
  if (match == SAME) return;
  if (match == FAILED) refuse_errno(apply->answer, "compare", entry->path);
  else apply_conflict(apply, "conflict", apply_words(match), entry->path);
  if (put_back(apply, entry, place) != 0) refuse_errno(apply->answer, "put back", entry->path);
}

static void take_file(struct apply *apply, const struct apply_entry *entry, const struct place *place) {
  if (is_folder(place->parent, place->name)) {
    apply_conflict(apply, "conflict", apply_words(FOLDER), entry->path);
    return;
  }
  if (apply_move(place->parent, place->name, apply->staging, place->slot, RENAME_NOREPLACE) != 0) {
    apply_obstacle(apply, "delete", entry->path);
    return;
  }
  renamed(apply, entry);
  compare_displaced(apply, entry, place);
}

/* A folder that holds something, or that the system holds on to, stays: only what was in the change goes. */
static void take_folder(struct apply *apply, const struct apply_entry *entry, const struct place *place) {
  if (!apply_empty(place->parent, place->name)) return;
  if (apply_move(place->parent, place->name, apply->staging, place->slot, RENAME_NOREPLACE) != 0) return;
  renamed(apply, entry);
  if (apply_empty(apply->staging, place->slot)) return;
  if (apply_move(apply->staging, place->slot, place->parent, place->name, RENAME_NOREPLACE) != 0)
    refuse_errno(apply->answer, "put back", entry->path);
}

static void make_folder(struct apply *apply, const struct apply_entry *entry, const struct place *place) {
  if (is_folder(place->parent, place->name)) return;
  if (entry->inode == 0) apply_conflict(apply, "conflict", "is gone", entry->path);
  else if (apply_move(apply->staging, place->slot, place->parent, place->name, RENAME_NOREPLACE) == 0) renamed(apply, entry);
  else if (errno != EEXIST || !is_folder(place->parent, place->name)) apply_obstacle(apply, "make", entry->path);
}

static void create(struct apply *apply, const struct apply_entry *entry, const struct place *place) {
  if (apply_move(apply->staging, place->slot, place->parent, place->name, RENAME_NOREPLACE) == 0) renamed(apply, entry);
  else if (errno == EEXIST && is_folder(place->parent, place->name))
    apply_conflict(apply, "conflict", "is a folder that holds other files", entry->path);
  else apply_obstacle(apply, "create", entry->path);
}

static void change(struct apply *apply, const struct apply_entry *entry, const struct place *place) {
  if (is_folder(place->parent, place->name)) {
    apply_conflict(apply, "conflict", apply_words(FOLDER), entry->path);
    return;
  }
  if (apply_move(apply->staging, place->slot, place->parent, place->name, RENAME_EXCHANGE) != 0) {
    apply_obstacle(apply, "exchange", entry->path);
    return;
  }
  renamed(apply, entry);
  compare_displaced(apply, entry, place);
}

static void carry_entry(struct apply *apply, const struct apply_entry *entry) {
  struct place place;
  place.parent = apply_parent(apply, entry->path, &place.name);
  apply_slot(entry, apply, place.slot);
  if (place.parent < 0) {
    /* A folder above one that stays can't be empty, and one that is gone need not go. */
    if (entry->kind != TAKE_FOLDER) apply_obstacle(apply, "carry", entry->path);
    return;
  }
  switch (entry->kind) {
    case TAKE_FILE: take_file(apply, entry, &place); break;
    case TAKE_FOLDER: take_folder(apply, entry, &place); break;
    case MAKE_FOLDER: make_folder(apply, entry, &place); break;
    case CREATE: create(apply, entry, &place); break;
    default: change(apply, entry, &place); break;
  }
  close(place.parent);
}

/* Stops at the first conflict: everything is brought back then. */
void apply_carry_entries(struct apply *apply, size_t from, size_t to) {
  struct answer *answer = apply->answer;
  for (size_t index = from; index < to && !answer->failed && answer->fields.length == 0; index++) carry_entry(apply, &apply->entries[index]);
}
