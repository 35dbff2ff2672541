/* Every inode of btrfs holds the number of the transaction that changed it last, and the kernel skips the parts of a tree that
   are older than a given one. So what a snapshot has of its own is found without looking at what it shares. None is missing, because
   a read-only subvolume has everything written down; one that is the same in the end costs a look. */
#include "touched.h"

#include <endian.h>
#include <inttypes.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define GENERATIONS_MAX 64
#define BUFFER_BYTES (1u << 20)

/* What of a subvolume's own record counts here. */
struct origin {
  uint8_t uuid[BTRFS_UUID_SIZE], parent[BTRFS_UUID_SIZE];
};

/* What a volume was made from. */
struct made {
  uint8_t uuid[BTRFS_UUID_SIZE], source[BTRFS_UUID_SIZE];
  uint64_t transaction;
};

/* The first item of one key that has not less than `offset`. Null: none. The answer lies in `search`. */
static const void *find_item(int fd, struct btrfs_ioctl_search_args *search, struct btrfs_ioctl_search_key key, size_t size) {
  memset(search, 0, sizeof *search);
  search->key = key;
  search->key.max_offset = UINT64_MAX;
  search->key.max_transid = UINT64_MAX;
  search->key.nr_items = 1;
  struct btrfs_ioctl_search_header header;
  if (ioctl(fd, BTRFS_IOC_TREE_SEARCH, search) != 0 || search->key.nr_items == 0) return NULL;
  memcpy(&header, search->buf, sizeof header);
  return header.len < size ? NULL : search->buf + sizeof header;
}

static bool subvolume_of(int fd, const uint8_t uuid[BTRFS_UUID_SIZE], uint64_t *id) {
  struct btrfs_ioctl_search_args search;
  uint64_t parts[2];
  memcpy(parts, uuid, sizeof parts);
  uint64_t first = le64toh(parts[0]), second = le64toh(parts[1]);
  const void *item = find_item(fd, &search,
                               (struct btrfs_ioctl_search_key){.tree_id = BTRFS_UUID_TREE_OBJECTID,
                                                               .min_objectid = first,
                                                               .max_objectid = first,
                                                               .min_type = BTRFS_UUID_KEY_SUBVOL,
                                                               .max_type = BTRFS_UUID_KEY_SUBVOL,
                                                               .min_offset = second},
                               sizeof *id);
  struct btrfs_ioctl_search_header header;
  if (item == NULL) return false;
  memcpy(&header, search.buf, sizeof header);
  memcpy(id, item, sizeof *id);
  *id = le64toh(*id);
  return header.offset == second;
}

static bool origin_of(int fd, uint64_t id, struct origin *origin) {
  struct btrfs_ioctl_search_args search;
  struct btrfs_root_item root;
  const void *item = find_item(fd, &search,
                               (struct btrfs_ioctl_search_key){.tree_id = BTRFS_ROOT_TREE_OBJECTID,
                                                               .min_objectid = id,
                                                               .max_objectid = id,
                                                               .min_type = BTRFS_ROOT_ITEM_KEY,
                                                               .max_type = BTRFS_ROOT_ITEM_KEY},
                               sizeof root);
  if (item == NULL) return false;
  memcpy(&root, item, sizeof root);
  memcpy(origin->uuid, root.uuid, BTRFS_UUID_SIZE);
  memcpy(origin->parent, root.parent_uuid, BTRFS_UUID_SIZE);
  return true;
}

/* Numbers of subvolumes are never used twice, and neither are uuids: a chain of them can't be imitated by what came later. */
static bool comes_from(int fd, const struct btrfs_ioctl_get_subvol_info_args *new, const uint8_t old[BTRFS_UUID_SIZE]) {
  struct origin at;
  uint64_t id;
  memcpy(at.parent, new->parent_uuid, BTRFS_UUID_SIZE);
  for (int steps = 0; steps < GENERATIONS_MAX; steps++) {
    if (memcmp(at.parent, old, BTRFS_UUID_SIZE) == 0) return true;
    uint8_t wanted[BTRFS_UUID_SIZE];
    memcpy(wanted, at.parent, BTRFS_UUID_SIZE);
    if (!subvolume_of(fd, wanted, &id) || !origin_of(fd, id, &at) || memcmp(at.uuid, wanted, BTRFS_UUID_SIZE) != 0) return false;
  }
  return false;
}

static void add(struct touched *touched, uint64_t inode) {
  if (touched->count == touched->room) {
    touched->room = touched->room == 0 ? 1024 : 2 * touched->room;
    touched->inodes = realloc(touched->inodes, touched->room * sizeof *touched->inodes);
    if (touched->inodes == NULL) abort();
  }
  touched->inodes[touched->count++] = inode;
}

/* Takes the inodes out of an answer of the kernel, which has them in ascending order. False: it is not as expected. */
static bool take(struct touched *touched, const char *items, size_t length, uint32_t count, uint64_t since, uint64_t *last) {
  for (size_t at = 0; count > 0; count--) {
    struct btrfs_ioctl_search_header header;
    struct btrfs_inode_item item;
    if (length - at < sizeof header) return false;
    memcpy(&header, items + at, sizeof header);
    at += sizeof header;
    if (length - at < header.len) return false;
    *last = header.objectid;
    if (header.type == BTRFS_INODE_ITEM_KEY) {
      if (header.len < sizeof item) return false;
      memcpy(&item, items + at, sizeof item);
      if (le64toh(item.transid) >= since) add(touched, header.objectid);
    }
    at += header.len;
  }
  return true;
}

static bool read_inodes(struct touched *touched, int fd, uint64_t since) {
  struct btrfs_ioctl_search_args_v2 *search = malloc(sizeof *search + BUFFER_BYTES);
  if (search == NULL) abort();
  bool good = true;
  for (uint64_t first = BTRFS_FIRST_FREE_OBJECTID; good;) {
    memset(search, 0, sizeof *search);
    search->key = (struct btrfs_ioctl_search_key){.min_objectid = first,
                                                  .max_objectid = BTRFS_LAST_FREE_OBJECTID,
                                                  .min_type = BTRFS_INODE_ITEM_KEY,
                                                  .max_type = BTRFS_INODE_ITEM_KEY,
                                                  .max_offset = UINT64_MAX,
                                                  .min_transid = since,
                                                  .max_transid = UINT64_MAX,
                                                  .nr_items = UINT32_MAX};
    search->buf_size = BUFFER_BYTES;
    uint64_t last = 0;
    good = ioctl(fd, BTRFS_IOC_TREE_SEARCH_V2, search) == 0;
    if (good && search->key.nr_items == 0) break;
    good = good && take(touched, (const char *)search->buf, BUFFER_BYTES, search->key.nr_items, since, &last) && last >= first;
    first = last + 1;
  }
  free(search);
  return good;
}

static bool read_uuid(const char *text, uint8_t uuid[BTRFS_UUID_SIZE]) {
  for (size_t at = 0; at < BTRFS_UUID_SIZE; at++)
    if (sscanf(text + 2 * at, "%2hhx", &uuid[at]) != 1) return false;
  return true;
}

/* The server's own file: the uuid of what a volume was made from, the transaction that this was made by, and the uuid of its source. */
static bool read_made(const char *origin, struct made *made) {
  char uuid[2 * BTRFS_UUID_SIZE + 1], source[2 * BTRFS_UUID_SIZE + 1];
  FILE *file = origin == NULL ? NULL : fopen(origin, "re");
  if (file == NULL) return false;
  bool read = fscanf(file, "%32[0-9a-f] %" SCNu64 " %32[0-9a-f]", uuid, &made->transaction, source) == 3;
  fclose(file);
  return read && strlen(uuid) == sizeof uuid - 1 && strlen(source) == sizeof source - 1 && read_uuid(uuid, made->uuid) &&
         read_uuid(source, made->source);
}

static int ascending(const void *left, const void *right) {
  uint64_t one = *(const uint64_t *)left, other = *(const uint64_t *)right;
  return one < other ? -1 : one > other;
}

/* `old` and what `new` comes from were both made from one subvolume, `old` later: an inode that neither side changed since the earlier of
   the two is the same on both. */
static bool read_both(struct touched *touched, int old, int new, const struct btrfs_ioctl_get_subvol_info_args *was,
                      const struct btrfs_ioctl_get_subvol_info_args *is, const char *origin) {
  struct made made;
  if (!read_made(origin, &made) || memcmp(made.source, was->parent_uuid, BTRFS_UUID_SIZE) != 0 || made.transaction > was->otransid) return false;
  if (!comes_from(new, is, made.uuid) || !read_inodes(touched, old, made.transaction + 1) || !read_inodes(touched, new, made.transaction + 1))
    return false;
  if (touched->count > 0) qsort(touched->inodes, touched->count, sizeof *touched->inodes, ascending);
  return true;
}

void touched_read(struct touched *touched, int old, int new, const char *origin) {
  struct btrfs_ioctl_get_subvol_info_args was = {0}, is = {0};
  *touched = (struct touched){0};
  if (ioctl(old, BTRFS_IOC_GET_SUBVOL_INFO, &was) < 0 || ioctl(new, BTRFS_IOC_GET_SUBVOL_INFO, &is) < 0) return;
  /* What still can be changed may have changes that are not in its tree yet. */
  bool frozen = (was.flags & BTRFS_ROOT_SUBVOL_RDONLY) != 0 && (is.flags & BTRFS_ROOT_SUBVOL_RDONLY) != 0 && was.ctransid <= was.otransid;
  /* The kernel makes a snapshot at the end of a transaction, when nothing can join that one any more. So whatever was changed in a
     copy of `old` was changed by a later one. */
  if (!frozen) return;
  bool direct = comes_from(new, &is, was.uuid);
  touched->known = direct ? read_inodes(touched, new, was.otransid + 1) : read_both(touched, old, new, &was, &is, origin);
}

bool touched_has(const struct touched *touched, uint64_t inode) {
  size_t low = 0, high = touched->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (touched->inodes[middle] == inode) return true;
    if (touched->inodes[middle] < inode) low = middle + 1;
    else high = middle;
  }
  return false;
}

void touched_free(struct touched *touched) {
  free(touched->inodes);
  *touched = (struct touched){0};
}
