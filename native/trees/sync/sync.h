/* Bringing a tip or a layer up to what reality is now. */
#ifndef SYNC_H
#define SYNC_H

#include "manifest.h"

#define LIST_MOST 1000
#define ROWS_MOST 10000
#define ANSWER_MOST (900u << 10) /* bytes of lists in one answer, so that it fits a frame */

/* A folder to be compared. */
struct visit {
  char *path;
  bool all;   /* with every folder below it */
  bool empty; /* made empty and not entered */
};

struct placed { /* a file with several names that this run has put into the target */
  uint64_t key, print;
  char *path;
};

struct mate { /* a name of a file in the manifest */
  uint64_t key;
  const char *folder;
  const struct entry *entry;
};

struct large_ids {
  uint32_t list[LIST_MOST];
  size_t count;
};

struct sync {
  int source, target, twin; /* twin: -1: there is none */
  bool twin_lost;
  int64_t twin_bytes, twin_files; /* that it still takes */
  bool writes; /* false: compare */
  bool layer, git, everything, verify, began, in_place;
  int64_t file_limit;
  const char *marker; /* NULL: none is needed */
  char **skips;
  size_t skip_count;
  struct manifest manifest;
  struct answer *answer;
  struct names names;
  struct output block; /* of the folder at hand */

  struct visit *visits;
  size_t visit_count, visit_room;
  char **unfinished; /* folders of the target whose owner, mode and times are set at the end */
  size_t unfinished_count, unfinished_room;
  struct placed *placed;
  size_t placed_count, placed_room;
  struct mate *mates;
  size_t mate_count;
  bool mates_known;

  struct large_ids owners, groups;
  uint64_t files, added, changed, removed, bytes, total_bytes, special;
  size_t touched_rows, torn_rows, big_rows, config_rows, same_config_rows, unreadable_rows, mount_rows, rows;
  bool ignore_changed, cut; /* cut: a list was longer than it may be */
};

/* The folder at hand. */
struct folder {
  const char *path;
  int source, target, twin; /* target and twin are opened when the first change needs them */
  bool all, empty, git_folder, touched;
};

/* sync.c */
void visit_later(struct sync *sync, const char *folder, const char *name, bool all, bool empty);
bool is_skipped(const struct sync *sync, const char *path);
char *join_path(const char *folder, const char *name); /* malloc'd; "." is left out */
void list_row(struct sync *sync, size_t *rows, const char *key, const char *value);
void note_change(struct sync *sync, char kind, const char *path); /* A, M or D: counts and lists it */

/* folder.c */
void visit_folder(struct sync *sync, const struct visit *visit);

/* target.c: all change the target; a failure is the answer's */
int target_folder(struct sync *sync, struct folder *folder); /* its descriptor, or -1 */
void target_remove(struct sync *sync, struct folder *folder, const char *name, bool for_good);
void target_make_folder(struct sync *sync, struct folder *folder, const char *name);
void target_finish_later(struct sync *sync, const char *path);
void target_finish(struct sync *sync);
bool target_matches(struct sync *sync, struct folder *folder, const char *name, const struct stat *status);

/* twin.c: as target.c; a failure gives the twin up, and the sync goes on */
void twin_lose(struct sync *sync);
void twin_remove(struct sync *sync, struct folder *folder, const char *name);
void twin_make_folder(struct sync *sync, struct folder *folder, const char *name);
void twin_copy(struct sync *sync, struct folder *folder, const char *name, bool over);
void twin_link(struct sync *sync, struct folder *folder, const char *path, const char *name); /* another name for `path` */
void twin_finish(struct sync *sync, const char *path, int target);

/* links.c */
void link_place(struct sync *sync, const struct stat *status, const char *path);
bool link_to_captured(struct sync *sync, struct folder *folder, const char *name, const struct stat *status);
void link_visit_mates(struct sync *sync, uint64_t key, const char *folder);

/* owners.c */
void note_owner(struct sync *sync, const struct stat *status);
void put_owners(struct sync *sync);

/* git.c */
bool is_git_folder(const struct sync *sync, const char *path);
bool is_git_config(const char *name);
bool is_ignore_file(const char *path);

#endif
