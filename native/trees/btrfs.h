/* What the requests for btrfs share with the removal of trees. */
#ifndef BTRFS_H
#define BTRFS_H

#include "../shared/answer.h"

#include <stdbool.h>
#include <stdint.h>

int destroy_subvolume(int parent, const char *name); /* btrfs.c: nested ones and read-only ones too; 0 or -1 */
bool parse_qgroup(const char *text, uint64_t *id);   /* btrfs_quota.c */
bool make_qgroup(int fd, const struct fields *request, struct answer *answer); /* btrfs_quota.c; false: refused */

#endif
