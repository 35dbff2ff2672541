/* Changes of a promotion, carried out in a project's real folder by renames that can all be taken back. */
#ifndef APPLY_H
#define APPLY_H

#include "../walk.h"

/* In the order in which they are carried out. The number of an entry is its name in the staging folder. */
enum apply_kind {
  TAKE_FILE = 'D',   /* out of the project into staging */
  TAKE_FOLDER = 'R', /* the same for a folder, if nothing is left in it */
  MAKE_FOLDER = 'M', /* unless it is there */
  CREATE = 'C',
  CHANGE = 'X', /* exchanged with the staged one, so that staging holds what was there */
};

/* What must be or become of a path: its mode as git writes it, 0 for nothing, and the name of its content. */
struct apply_side {
  unsigned mode;
  const char *id;
};

struct apply_entry {
  char kind;
  struct apply_side old, new;
  const char *path;
  int64_t mode, mtime; /* that a file coming back once had; mode -1: none is asked for */
  /* While it is staged: the entry before it that is the same file, or a name in the project that this file still has. NULL: none. */
  const struct apply_entry *like;
  const char *beside;
  uint64_t beside_inode;
  /* What was staged; inode 0: nothing was */
  uint64_t inode;
  int64_t staged_size, staged_mtime;
};

/* Where a content lies among the others. */
struct apply_place {
  const char *id;
  int64_t offset, size;
};

/* The folder of the project that the last staged file is for. */
struct apply_near {
  const char *path; /* of that file, its first `length` bytes being the folder; NULL: none yet */
  size_t length;
  int folder; /* -1: it can't be had, or is none for this */
};

/* What a step needs while it looks at one entry; each thread has its own. On the heap: with buffers of this size in its thread-local
   memory, the program could start no thread with a small stack. */
struct apply_room {
  char ours[CHUNK_MAX], theirs[CHUNK_MAX];
  bool no_range; /* copy_file_range was refused, which counts for the pair of file systems */
};

/* What every step holds while it works. */
struct apply {
  int state, project, contents, staging; /* contents, the file with all of them, and staging: -1 where there are none */
  struct apply_place *places;            /* of contents, by id */
  size_t place_count;
  const char *id;
  uint64_t project_inode, staging_inode;
  char *text, *twins; /* what the entries point into */
  struct apply_entry *entries;
  size_t count;
  struct apply_near near;
  struct apply_room *room;
  size_t halt; /* tests: the process ends after the first rename from the entry with this number on, counted from 1 */
  struct answer *answer;
};

#define NANOSECONDS 1000000000ll
#define SLOT_MAX 24
#define APPLY_ROWS_MAX (FRAME_MAX / 2)
#define APPLY_MORE_ROWS "are more than can be listed%c."

/* path.c */
bool apply_path_allowed(const char *path);

/* journal.c: the list of what to do as the server wrote it, and the journal of what is staged for it. False: refused. */
char *apply_read_text(int folder, const char *name, size_t *length); /* with a NUL behind it; NULL leaves errno */
bool apply_read_list(struct apply *apply);
bool apply_read_journal(struct apply *apply);
bool apply_write_journal(struct apply *apply);

/* place.c: the folder with contents, as src/machine/merge/contents.ts writes it. */
bool apply_open_contents(struct apply *apply, const char *folder); /* false: refused */
const struct apply_place *apply_place_of(const struct apply *apply, const char *id); /* NULL leaves errno */
int apply_read_place(const struct apply *apply, const struct apply_place *place, int64_t from, char *buffer, size_t length); /* 0 or -1 */

/* content.c */
enum match { SAME, OTHER, MISSING, FOLDER, FAILED }; /* FAILED leaves errno */
enum match apply_compare(const struct apply *apply, int folder, const char *name, const struct apply_side *side);
int apply_copy(const struct apply *apply, const struct apply_place *place, int target); /* all bytes; 0 or -1 */

/* twins.c */
bool apply_read_twins(struct apply *apply); /* false: refused */
bool apply_stage_twin(const struct apply *apply, const struct apply_entry *entry, const char *slot); /* as another name; false: it has none */

/* each.c: no entry may need another one's, but one that is the same file. Steps of several entries run at once. */
typedef void (*apply_step)(struct apply *apply, struct apply_entry *entry);
void apply_each(struct apply *apply, apply_step step);

/* near.c */
int apply_near_create(struct apply_near *near, const struct apply *apply, const char *path); /* a descriptor, or -1: there is no such way */
int apply_near_name(int fd, const struct apply *apply, const char *slot);                     /* 0 or -1 */
void apply_near_close(struct apply_near *near);

/* stage.c */
void apply_stage_entries(struct apply *apply);

/* carry.c */
void apply_carry_entries(struct apply *apply, size_t from, size_t to);

/* back.c */
void apply_bring_back(struct apply *apply);
/* What was displaced goes back to its place, unless the user has put something newer there. 0 or -1. */
int apply_exchange_back(struct apply *apply, const struct apply_entry *entry, int parent, const char *name, const char *slot);

/* verify.c */
void apply_verify_entries(struct apply *apply);

/* apply.c: what the steps share */
void apply_slot(const struct apply_entry *entry, const struct apply *apply, char slot[SLOT_MAX]);
int apply_parent(const struct apply *apply, const char *path, const char **name); /* never through a link; the caller closes it */
uint64_t apply_inode(int folder, const char *name);                              /* 0: nothing there */
bool apply_empty(int folder, const char *name);                                  /* a folder, with nothing in it */
int apply_move(int from, const char *name, int to, const char *target, unsigned flags);
int64_t apply_nanoseconds(struct timespec time);
void apply_conflict(struct apply *apply, const char *key, const char *what, const char *path);
const char *apply_words(enum match match); /* why it is not SAME */
/* An errno as a conflict where it says that the path is another than expected; else the answer is a refusal. */
void apply_obstacle(struct apply *apply, const char *step, const char *path);

#endif
