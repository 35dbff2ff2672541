/* Walking trees that may be hostile: never through a link, never into another mount. */
#ifndef WALK_H
#define WALK_H

#include "../shared/answer.h"

#include <sys/stat.h>

/* walk.c */
int open_beneath(int root, const char *path, int flags); /* never through a link, into another mount, or out of root */
/* The folder that an absolute path lies in. False: the answer is a refusal. */
bool open_parent(const char *path, int *parent, const char **name, struct answer *answer);

/* The names in a folder, sorted by bytes; freed by names_free. */
struct names {
  char *data;
  size_t length, capacity;
  const char **sorted;
  size_t count, room;
};
int names_read(int folder, struct names *names); /* reuses what an earlier call left; 0 or -1 */
void names_free(struct names *names);
/* What the folder itself says of one of its names, given as it is in `sorted`: the number of its inode, and its type (DT_...). */
uint64_t name_inode(const char *name);
unsigned char name_type(const char *name);

/* remove.c: removes what `name` is, whatever it is. Never follows a link; EXDEV at another mount. 0 or -1. */
int remove_at(int parent, const char *name);

#endif
