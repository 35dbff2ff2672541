/* Which folders of a watched project changed since the last drain. */
#ifndef WATCH_H
#define WATCH_H

#include "host.h"

#define DIRTY_MOST 4096               /* folders a drain names; more is answered with too_many */
#define DIRTY_BYTES_MOST (512u << 10) /* so that a drain's folders fit into a sync request */

struct watch {
  struct source source; /* the inotify descriptor; -1 with fanotify */
  struct watch *next;
  char *key, *path;
  int root;
  char **skips;
  size_t skip_count;
  char **dirty; /* hash set of relative folders */
  size_t dirty_room, dirty_count, dirty_bytes;
  bool overflow, too_many;
  struct inotify *inotify; /* NULL: fanotify */
};

extern struct watch *watches;

/* watch.c */
void watch_dirty(struct watch *watch, const char *folder); /* relative; skipped ones don't count */
bool watch_skips(const struct watch *watch, const char *folder);

/* watch_fanotify.c: one group for all watches */
int fanotify_watch(struct watch *watch); /* 0, or -1 where the kernel or the file system refuses */
void fanotify_drain(void);
void fanotify_end(void); /* when no watch is left */

/* watch_inotify.c: one instance a watch */
int inotify_watch(struct watch *watch); /* -1 with E2BIG: more folders than an ordinary user's watch covers */
void inotify_drain(struct watch *watch);
void inotify_restart(struct watch *watch); /* its folders are not the ones it knew; drains say overflow until it works again */
void inotify_end(struct watch *watch);

#endif
