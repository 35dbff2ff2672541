/* What the parts of a comparison share. */
#ifndef DIFF_H
#define DIFF_H

#include "gather.h"
#include "touched.h"

#define MOST_OLD 64
#define MOST_SHARED 64

/* The walk calls itself up to two thousand times, so what needs much room on the stack stays out of its frames. */
#define APART __attribute__((noinline))

/* `old` may be a stack of layers, topmost first; `new` is then the upper folder of an overlay over them. Or `new` is a full
   copy that is the upper folder of an overlay in which only the shared folders lie below. */
struct diff {
  int old[MOST_OLD];
  size_t old_count;
  int new;
  bool overlay;
  int shared_root; /* what the paths of shared folders begin at; -1 where none is shared */
  const char *shared[MOST_SHARED];
  size_t shared_count;
  const struct fields *request; /* its `hidden=`: places of shared folders that the mask hides inside */
  bool nested;                  /* `new` is a folder of an overlay's upper one, not that itself */
  struct touched touched; /* of `new`, where it is a full copy */
  struct answer *answer;
  struct gathering *gathering; /* where contents are asked for: the rows go there */
  bool full;   /* the reply has no room left */
  bool unseen; /* something lies deeper than a path can name, or is closed to us */
};

/* diff.c */
bool is_whiteout(const struct stat *status);
bool is_git(const char *name);
bool is_gone(int error);
char *below(const char *folder, const char *name); /* freed by the caller */
/* Status of a path below a root: 0, or -1 with errno. */
int status_beneath(int root, const char *path, struct stat *status);
/* Reads a folder's names; a folder that is not there has none. False: it is there, but can't be read. */
bool names_beneath(int root, const char *folder, struct names *names);
/* Where the frozen side has `path`: a root descriptor, or -1. */
int find_old(const struct diff *diff, const char *path, struct stat *status);
void report_sides(struct diff *diff, struct gather_side old, struct gather_side new, const char *path);

/* below.c: what an overlay shows of the layers below its upper folder */
struct lower {
  bool opaque;
  char *redirect; /* a folder that was renamed: where its content lies below; NULL if it lies at its own path */
};
struct lower lower_of(const struct diff *diff, const char *path);
/* Where the content that a folder of the upper shows from below lies, or NULL; freed by the caller. `beside` is that of its parent. */
char *source_of(const struct diff *diff, const char *path, const char *beside, const struct lower *lower);
bool shows_below(const struct diff *diff, bool merged, const char *source);
/* What shows through at `folder` from `source` in the layers below, apart from what the upper folder has itself. */
void all_shown(struct diff *diff, const char *folder, const char *source);
bool is_shared(const struct diff *diff, const char *path);
bool open_shared(struct diff *diff, const struct fields *request);

#endif
