/* The requests of the host channel that read, compare and write trees. */
#ifndef TREES_H
#define TREES_H

#include "../shared/answer.h"

/* remove.c, measure.c, extract.c, mask.c */
void tree_remove(const struct fields *request, struct answer *answer);
void tree_measure(const struct fields *request, struct answer *answer);
void extract_request(const struct fields *request, struct answer *answer);
void mask_request(const struct fields *request, struct answer *answer);

/* btrfs.c, btrfs_quota.c */
void btrfs_create(const struct fields *request, struct answer *answer);
void btrfs_snapshot(const struct fields *request, struct answer *answer);
void btrfs_readonly(const struct fields *request, struct answer *answer);
void btrfs_identity(const struct fields *request, struct answer *answer);
void btrfs_delete(const struct fields *request, struct answer *answer);
void btrfs_sync(const struct fields *request, struct answer *answer);
void btrfs_freespace(const struct fields *request, struct answer *answer);
void btrfs_quota(const struct fields *request, struct answer *answer);
void btrfs_qgroup(const struct fields *request, struct answer *answer);
void btrfs_usage(const struct fields *request, struct answer *answer);

/* diff/diff.c */
void diff_request(const struct fields *request, struct answer *answer);

/* sync/sync.c */
void sync_request(const struct fields *request, struct answer *answer);
void compare_request(const struct fields *request, struct answer *answer);

/* apply/apply.c */
void apply_stage(const struct fields *request, struct answer *answer);
void apply_carry(const struct fields *request, struct answer *answer);
void apply_verify(const struct fields *request, struct answer *answer);
void apply_back(const struct fields *request, struct answer *answer);
void apply_clean(const struct fields *request, struct answer *answer);

#endif
