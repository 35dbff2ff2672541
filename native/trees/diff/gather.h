/* Takes the content of changed files out of a tree, so that the server can compare and merge it outside. */
#ifndef GATHER_H
#define GATHER_H

#include "../walk.h"

struct gathering;

/* list= and blobs= name the files to write, most= and total= bound the bytes. NULL: nothing was asked for, or the answer is a refusal. */
struct gathering *gather_open(const struct fields *request, struct answer *answer);
/* One side of a change: the root that holds it, where below it, and its status; no path where it is not there. */
struct gather_side {
  int root;
  const char *path;
  const struct stat *status;
};
/* False: the list is full. */
bool gather_change(struct gathering *gathering, char what, const char *type, struct gather_side old, struct gather_side new, const char *path);
/* A folder in which something came or went and something is untouched: a merge must not take it for a renamed one. */
void gather_kept(struct gathering *gathering, const char *path);
void gather_close(struct gathering *gathering, struct answer *answer); /* NULL is fine */

#endif
