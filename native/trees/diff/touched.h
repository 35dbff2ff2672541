/* Which inodes of a frozen subvolume can differ from the subvolume that it comes from. */
#ifndef TOUCHED_H
#define TOUCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct touched {
  bool known; /* false: any may */
  uint64_t *inodes;
  size_t count, room;
};

/* `old` and `new` are folders. Known where both lie in read-only subvolumes of one btrfs, and `new` in one that was made from that of
   `old`, with any number of subvolumes in between that are all still there. Also where the file `origin` (or NULL) says that it was made
   from an earlier snapshot of what `old` is one of: then inodes are listed that either side changed since. */
void touched_read(struct touched *touched, int old, int new, const char *origin);
bool touched_has(const struct touched *touched, uint64_t inode);
void touched_free(struct touched *touched);

#endif
