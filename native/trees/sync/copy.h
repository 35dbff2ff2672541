/* Copying one file from reality. */
#ifndef COPY_H
#define COPY_H

#include "../walk.h"

enum copied { COPIED, COPIED_TORN, SOURCE_GONE, SOURCE_UNREADABLE, TARGET_FAILED };

/* Makes `name` in the target folder a copy of `name` in the source folder. It must not exist there yet; a file may with `over`, and
   then gets the new content in its place where it can. `seen` becomes the status of what was copied. TARGET_FAILED leaves errno. */
enum copied copy_file(int source, int target, const char *name, bool over, struct stat *seen);
/* The same of a file that stands still, of at most so many bytes, which are read and written: a clone would wait for the disk. 0 or -1. */
int copy_frozen(int source, int target, const char *name, bool over, off_t most);
enum copied copy_link(int source, int target, const char *name, struct stat *seen);
/* Owner (root only), mode, attributes of `user.`, and times, in that order. 0 or -1. */
int copy_metadata(int source, int target, const struct stat *status);

#endif
