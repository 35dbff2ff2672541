/* Subvolumes and snapshots. Paths lie in the pool, which only the server writes. */
#include "btrfs.h"
#include "trees.h"
#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <unistd.h>

#define PARENTS_MAX 16
#define SUBVOLUME_ROOT 256 /* inode number of every subvolume's top folder */
#define NESTING_MAX 64

struct parents {
  struct btrfs_qgroup_inherit inherit;
  __u64 groups[PARENTS_MAX];
};

/* Joins the new subvolume to its parent qgroups at birth: afterwards would need a rescan. */
static bool read_parents(const struct fields *request, struct parents *parents, struct btrfs_ioctl_vol_args_v2 *arguments,
                         struct answer *answer) {
  memset(parents, 0, sizeof *parents);
  for (const char *text = field(request, "qgroup"); text != NULL; text = field_next(request, "qgroup", text)) {
    uint64_t id;
    if (parents->inherit.num_qgroups == PARENTS_MAX || !parse_qgroup(text, &id)) {
      refuse(answer, "bad-request", EINVAL, "qgroup", "%s is no qgroup, or there are more than %d", text, PARENTS_MAX);
      return false;
    }
    parents->groups[parents->inherit.num_qgroups++] = id;
  }
  if (parents->inherit.num_qgroups == 0) return true;
  arguments->flags |= BTRFS_SUBVOL_QGROUP_INHERIT;
  arguments->size = sizeof parents->inherit + parents->inherit.num_qgroups * sizeof *parents->groups;
  arguments->qgroup_inherit = &parents->inherit;
  return true;
}

static bool set_name(struct btrfs_ioctl_vol_args_v2 *arguments, const char *name, struct answer *answer) {
  if (strlen(name) <= 255) {
    strcpy(arguments->name, name);
    return true;
  }
  refuse(answer, "bad-request", ENAMETOOLONG, "path", "the name %s is longer than 255 bytes", name);
  return false;
}

void btrfs_create(const struct fields *request, struct answer *answer) {
  struct btrfs_ioctl_vol_args_v2 arguments = {0};
  struct parents parents;
  const char *name, *path = required(request, "path", answer);
  int parent;
  if (path == NULL || !read_parents(request, &parents, &arguments, answer)) return;
  if (!open_parent(path, &parent, &name, answer)) return;
  if (set_name(&arguments, name, answer) && ioctl(parent, BTRFS_IOC_SUBVOL_CREATE_V2, &arguments) != 0)
    refuse_errno(answer, "create", path);
  close(parent);
}

/* Made in `nursery` and renamed into its place: the folder of its place is locked for the rename alone, and not until the
   snapshot is on the disk. */
static int snapshot_beside(const char *nursery, int parent, const char *name, struct btrfs_ioctl_vol_args_v2 *arguments) {
  int place = open(nursery, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (place < 0) return -1;
  int result = ioctl(place, BTRFS_IOC_SNAP_CREATE_V2, arguments), error = errno;
  if (result == 0 && (result = renameat2(place, name, parent, name, RENAME_NOREPLACE)) != 0) {
    error = errno;
    destroy_subvolume(place, name);
  }
  close(place);
  errno = error;
  return result;
}

void btrfs_snapshot(const struct fields *request, struct answer *answer) {
  struct btrfs_ioctl_vol_args_v2 arguments = {0};
  struct parents parents;
  const char *name, *source = required(request, "source", answer), *path = required(request, "path", answer);
  const char *nursery = field(request, "nursery");
  int parent;
  if (source == NULL || path == NULL || !read_parents(request, &parents, &arguments, answer)) return;
  if (!open_parent(path, &parent, &name, answer)) return;
  if (field_flag(request, "readonly")) arguments.flags |= BTRFS_SUBVOL_RDONLY;
  int fd = open(source, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  arguments.fd = fd;
  if (fd < 0) refuse_errno(answer, "source", source);
  else if (make_qgroup(parent, request, answer) && set_name(&arguments, name, answer) &&
           (nursery == NULL ? ioctl(parent, BTRFS_IOC_SNAP_CREATE_V2, &arguments) : snapshot_beside(nursery, parent, name, &arguments)) != 0)
    refuse_errno(answer, "snapshot", path);
  if (fd >= 0) close(fd);
  close(parent);
}

void btrfs_readonly(const struct fields *request, struct answer *answer) {
  const char *path = required(request, "path", answer);
  if (path == NULL) return;
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  __u64 flags;
  if (fd < 0) {
    refuse_errno(answer, "path", path);
    return;
  }
  if (ioctl(fd, BTRFS_IOC_SUBVOL_GETFLAGS, &flags) != 0) refuse_errno(answer, "readonly", path);
  flags = field_flag(request, "readonly") ? flags | BTRFS_SUBVOL_RDONLY : flags & ~(__u64)BTRFS_SUBVOL_RDONLY;
  if (!answer->failed && ioctl(fd, BTRFS_IOC_SUBVOL_SETFLAGS, &flags) != 0) refuse_errno(answer, "readonly", path);
  close(fd);
}

static void put_uuid(struct output *fields, const char *key, const __u8 uuid[BTRFS_UUID_SIZE]) {
  char text[2 * BTRFS_UUID_SIZE + 1];
  for (size_t at = 0; at < BTRFS_UUID_SIZE; at++) snprintf(text + 2 * at, 3, "%02x", uuid[at]);
  put(fields, key, "%s", text);
}

/* What tells a frozen subvolume from any other, and whether it was changed since it was made. */
void btrfs_identity(const struct fields *request, struct answer *answer) {
  const char *path = required(request, "path", answer);
  struct btrfs_ioctl_get_subvol_info_args info = {0};
  struct stat status;
  if (path == NULL) return;
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &status) != 0) refuse_errno(answer, "identity", path);
  else if (status.st_ino != SUBVOLUME_ROOT) refuse(answer, "bad-request", ENOTTY, "identity", "%s is not a subvolume", path);
  /* The kernel answers with a positive number where it does not find the folder that it lies in. This request does not need that folder. */
  else if (ioctl(fd, BTRFS_IOC_GET_SUBVOL_INFO, &info) < 0) refuse_errno(answer, "identity", path);
  if (fd >= 0) close(fd);
  if (answer->failed) return;
  put_uuid(&answer->fields, "uuid", info.uuid);
  put_uuid(&answer->fields, "parent", info.parent_uuid);
  put(&answer->fields, "transaction", "%llu", (unsigned long long)info.otransid);
  put(&answer->fields, "readonly", "%d", (info.flags & BTRFS_ROOT_SUBVOL_RDONLY) != 0);
  put(&answer->fields, "changed", "%d", info.ctransid > info.otransid);
}

/* The first subvolume that lies directly in subvolume `parent`: 1 found, 0 none, -1 error. */
static int nested_subvolume(int fd, uint64_t parent, uint64_t *child) {
  struct btrfs_ioctl_search_args search = {.key = {
      .tree_id = BTRFS_ROOT_TREE_OBJECTID, .min_objectid = parent, .max_objectid = parent,
      .min_type = BTRFS_ROOT_REF_KEY, .max_type = BTRFS_ROOT_REF_KEY,
      .max_offset = UINT64_MAX, .max_transid = UINT64_MAX, .nr_items = 1}};
  if (ioctl(fd, BTRFS_IOC_TREE_SEARCH, &search) != 0) return -1;
  if (search.key.nr_items == 0) return 0;
  struct btrfs_ioctl_search_header found;
  memcpy(&found, search.buf, sizeof found);
  *child = found.offset;
  return 1;
}

static int destroy_by_id(int fd, uint64_t id, int depth) {
  uint64_t child;
  int found;
  while ((found = nested_subvolume(fd, id, &child)) == 1) {
    if (depth == NESTING_MAX) errno = ELOOP;
    if (depth == NESTING_MAX || destroy_by_id(fd, child, depth + 1) != 0) return -1;
  }
  if (found < 0) return -1;
  struct btrfs_ioctl_vol_args_v2 arguments = {.flags = BTRFS_SUBVOL_SPEC_BY_ID, .subvolid = id};
  return ioctl(fd, BTRFS_IOC_SNAP_DESTROY_V2, &arguments);
}

int destroy_subvolume(int parent, const char *name) {
  int fd = open_beneath(parent, name, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return -1;
  struct stat status;
  struct statfs system;
  struct btrfs_ioctl_ino_lookup_args lookup = {.objectid = BTRFS_FIRST_FREE_OBJECTID};
  bool is_btrfs = fstatfs(fd, &system) == 0 && (uint32_t)system.f_type == 0x9123683Eu;
  if (!is_btrfs || fstat(fd, &status) != 0 || status.st_ino != SUBVOLUME_ROOT || ioctl(fd, BTRFS_IOC_INO_LOOKUP, &lookup) != 0) {
    close(fd);
    errno = ENOTTY;
    return -1;
  }
  close(fd); /* an open descriptor of the victim would keep its space until it is closed */
  return destroy_by_id(parent, lookup.treeid, 0);
}

void btrfs_delete(const struct fields *request, struct answer *answer) {
  const char *name, *path = required(request, "path", answer);
  int parent;
  if (path == NULL || !open_parent(path, &parent, &name, answer)) return;
  /* Flags such as immutable on a nested subvolume or above it refuse the short way; the long way clears them. */
  if (destroy_subvolume(parent, name) != 0) {
    int error = errno;
    bool flags = error == EPERM || error == ENOTEMPTY || error == EROFS;
    if (!flags || remove_at(parent, name) != 0) {
      if (!flags) errno = error;
      if (error == ENOTTY) refuse(answer, "bad-request", ENOTTY, "delete", "%s is not a subvolume", path);
      else refuse_errno(answer, "delete", path);
    }
  }
  close(parent);
}

void btrfs_sync(const struct fields *request, struct answer *answer) {
  const char *path = required(request, "path", answer);
  int fd = path == NULL ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (path == NULL) return;
  if (fd < 0 || syncfs(fd) != 0) refuse_errno(answer, "sync", path);
  if (fd >= 0) close(fd);
}

void btrfs_freespace(const struct fields *request, struct answer *answer) {
  const char *path = required(request, "path", answer);
  struct statfs system;
  if (path == NULL) return;
  if (statfs(path, &system) != 0) {
    refuse_errno(answer, "freespace", path);
    return;
  }
  put(&answer->fields, "total", "%llu", (unsigned long long)system.f_blocks * (unsigned long long)system.f_bsize);
  put(&answer->fields, "free", "%llu", (unsigned long long)system.f_bavail * (unsigned long long)system.f_bsize);
}
