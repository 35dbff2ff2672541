/* Fuzzes what diff reads of the trees of btrfs, with answers that no kernel gives. Linked with trees/diff/touched.c alone, where
   `ioctl` is fuzz_ioctl. fuzz_touched <seconds> [seed] */
#include "../trees/diff/touched.h"
#include "invent.h"

#include <errno.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <stdarg.h>
#include <stdio.h>

int fuzz_ioctl(int fd, unsigned long request, ...);

static size_t known, answers_left;
static uint64_t inode;

static void describe(struct btrfs_ioctl_get_subvol_info_args *info) {
  info->flags = once_in(16) ? 0 : BTRFS_ROOT_SUBVOL_RDONLY;
  info->otransid = below(100);
  info->ctransid = once_in(16) ? 200 : below(info->otransid + 1);
  info->uuid[0] = (uint8_t)below(3);
  info->parent_uuid[0] = (uint8_t)below(3);
}

static void find(struct btrfs_ioctl_search_args *search) {
  struct btrfs_ioctl_search_header header = {.len = once_in(8) ? (uint32_t)rand() : sizeof(struct btrfs_root_item), .offset = search->key.min_offset};
  for (size_t at = 0; at < sizeof search->buf; at++) search->buf[at] = (char)(once_in(2) ? 0 : below(3));
  memcpy(search->buf, &header, sizeof header);
  search->key.nr_items = once_in(8) ? 0 : 1;
}

static void list(struct btrfs_ioctl_search_args_v2 *search) {
  char *items = (char *)search->buf;
  size_t at = 0, size = (size_t)search->buf_size, count = answers_left == 0 ? 0 : below(once_in(16) ? 6000 : 8);
  if (answers_left > 0) answers_left--;
  if (search->key.min_objectid > inode) inode = search->key.min_objectid;
  search->key.nr_items = (uint32_t)count;
  for (; count > 0; count--) {
    struct btrfs_ioctl_search_header header = {.objectid = inode++, .type = once_in(8) ? 5 : BTRFS_INODE_ITEM_KEY, .len = once_in(64) ? (uint32_t)rand() : sizeof(struct btrfs_inode_item)};
    struct btrfs_inode_item item = {.transid = below(200)};
    if (once_in(64)) header.len = (uint32_t)below(400);
    if (size - at < sizeof header + sizeof item) return;
    memcpy(items + at, &header, sizeof header);
    memcpy(items + at + sizeof header, &item, sizeof item);
    at += sizeof header;
    at += header.len < size - at ? header.len : 0;
  }
}

int fuzz_ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void *argument = va_arg(arguments, void *);
  va_end(arguments);
  (void)fd;
  if (once_in(64)) return errno = EPERM, -1;
  if (request == BTRFS_IOC_GET_SUBVOL_INFO) describe(argument);
  else if (request == BTRFS_IOC_TREE_SEARCH) find(argument);
  else if (request == BTRFS_IOC_TREE_SEARCH_V2) list(argument);
  else abort();
  return 0;
}

int main(int argc, char **argv) {
  time_t end = fuzz_begin(argc, argv);
  size_t runs = 0, found = 0;
  for (; time(NULL) < end; runs++) {
    struct touched touched;
    answers_left = below(5);
    inode = 0;
    touched_read(&touched, 3, 4, NULL);
    for (size_t at = 0; touched.known && at < touched.count; at++) {
      if (at > 0 && touched.inodes[at] <= touched.inodes[at - 1]) abort(); /* the search relies on it */
      if (!touched_has(&touched, touched.inodes[at])) abort();
    }
    found += touched_has(&touched, below(1000));
    known += touched.known && touched.count > 0;
    touched_free(&touched);
  }
  printf("runs=%zu acts=%zu found=%zu\n", runs, known, found);
  return 0;
}
