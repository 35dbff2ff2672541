/* Quotas. Simple quotas charge the writer; the parent qgroup of a sandbox's subvolumes carries the limit. */
#include "btrfs.h"
#include "trees.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ENABLE_SIMPLE_QUOTA 4 /* BTRFS_QUOTA_CTL_ENABLE_SIMPLE_QUOTA, absent from older headers */

bool parse_qgroup(const char *text, uint64_t *id) {
  char *end;
  unsigned long level = strtoul(text, &end, 10);
  if (end == text || *end != '/' || level > 0xffff || end[1] < '0' || end[1] > '9') return false;
  errno = 0;
  unsigned long long number = strtoull(end + 1, &end, 10);
  if (errno != 0 || *end != '\0' || number >> 48 != 0) return false;
  *id = (uint64_t)level << 48 | number;
  return true;
}

static int open_folder(const struct fields *request, const char *step, struct answer *answer) {
  const char *path = required(request, "path", answer);
  if (path == NULL) return -1;
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) refuse_errno(answer, step, path);
  return fd;
}

/* Reads <file> of the file system's folder of qgroups in sysfs, where the numbers are the kernel's own and current. */
static bool read_sysfs(int fd, const char *file, char *text, size_t room) {
  struct btrfs_ioctl_fs_info_args info = {0};
  if (ioctl(fd, BTRFS_IOC_FS_INFO, &info) != 0) return false;
  const __u8 *u = info.fsid;
  char path[256];
  snprintf(path, sizeof path, "/sys/fs/btrfs/%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x/qgroups/%s",
           u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15], file);
  int file_fd = open(path, O_RDONLY | O_CLOEXEC);
  if (file_fd < 0) return false;
  ssize_t length = read(file_fd, text, room - 1);
  close(file_fd);
  if (length < 0) return false;
  text[length] = '\0';
  text[strcspn(text, "\n")] = '\0';
  return true;
}

void btrfs_quota(const struct fields *request, struct answer *answer) {
  int fd = open_folder(request, "quota", answer);
  if (fd < 0) return;
  struct btrfs_ioctl_quota_ctl_args arguments = {.cmd = ENABLE_SIMPLE_QUOTA};
  bool simple = ioctl(fd, BTRFS_IOC_QUOTA_CTL, &arguments) == 0;
  if (!simple) {
    arguments = (struct btrfs_ioctl_quota_ctl_args){.cmd = BTRFS_QUOTA_CTL_ENABLE};
    if (ioctl(fd, BTRFS_IOC_QUOTA_CTL, &arguments) != 0) refuse_errno(answer, "quota", field(request, "path"));
  }
  char mode[32]; /* quotas that were on already keep their kind, whatever was asked for */
  if (read_sysfs(fd, "mode", mode, sizeof mode)) simple = strcmp(mode, "squota") == 0;
  put(&answer->fields, "kind", "%s", simple ? "simple" : "classic");
  close(fd);
}

static int change_qgroup(int fd, const char *action, uint64_t id, int64_t bytes) {
  if (strcmp(action, "limit") == 0) {
    /* Exclusive, because in classic mode the referenced bytes hold the shared base as well. */
    struct btrfs_ioctl_qgroup_limit_args limit = {.qgroupid = id, .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_EXCL}};
    limit.lim.max_excl = bytes > 0 ? (__u64)bytes : UINT64_MAX;
    return ioctl(fd, BTRFS_IOC_QGROUP_LIMIT, &limit);
  }
  struct btrfs_ioctl_qgroup_create_args arguments = {.create = strcmp(action, "create") == 0, .qgroupid = id};
  return ioctl(fd, BTRFS_IOC_QGROUP_CREATE, &arguments);
}

/* A new group for what is about to be made, with its limit: limit=. True where none is asked for. */
bool make_qgroup(int fd, const struct fields *request, struct answer *answer) {
  const char *text = field(request, "qgroup");
  uint64_t id;
  int64_t bytes;
  if (field(request, "limit") == NULL) return true;
  if (text == NULL || !parse_qgroup(text, &id) || !field_number(request, "limit", &bytes) || bytes < 0) {
    refuse(answer, "bad-request", EINVAL, "qgroup", "limit needs qgroup, and must be a number");
    return false;
  }
  if (change_qgroup(fd, "create", id, 0) == 0 && change_qgroup(fd, "limit", id, bytes) == 0) return true;
  refuse_errno(answer, "qgroup", text);
  return false;
}

void btrfs_qgroup(const struct fields *request, struct answer *answer) {
  const char *action = required(request, "action", answer), *text = required(request, "qgroup", answer);
  uint64_t id;
  int64_t bytes = 0;
  if (action == NULL || text == NULL) return;
  bool known = strcmp(action, "create") == 0 || strcmp(action, "delete") == 0 || strcmp(action, "limit") == 0;
  bool sized = strcmp(action, "limit") != 0 || field_number(request, "bytes", &bytes);
  if (!known || !sized || bytes < 0 || !parse_qgroup(text, &id)) {
    refuse(answer, "bad-request", EINVAL, "qgroup", "action=%s qgroup=%s: not a change of a qgroup", action, text);
    return;
  }
  int fd = open_folder(request, "qgroup", answer);
  if (fd < 0) return;
  if (change_qgroup(fd, action, id, bytes) != 0) refuse_errno(answer, "qgroup", text);
  close(fd);
}

void btrfs_usage(const struct fields *request, struct answer *answer) {
  const char *text = required(request, "qgroup", answer);
  uint64_t id;
  if (text == NULL) return;
  if (!parse_qgroup(text, &id)) {
    refuse(answer, "bad-request", EINVAL, "usage", "%s is no qgroup", text);
    return;
  }
  int fd = open_folder(request, "usage", answer);
  if (fd < 0) return;
  char file[80], bytes[32], limit[32], limited[32];
  unsigned level = (unsigned)(id >> 48);
  unsigned long long number = id & 0xffffffffffffull;
  snprintf(file, sizeof file, "%u_%llu/exclusive", level, number);
  bool found = read_sysfs(fd, file, bytes, sizeof bytes);
  snprintf(file, sizeof file, "%u_%llu/max_exclusive", level, number);
  found = found && read_sysfs(fd, file, limit, sizeof limit);
  snprintf(file, sizeof file, "%u_%llu/limit_flags", level, number);
  found = found && read_sysfs(fd, file, limited, sizeof limited);
  close(fd);
  if (!found) {
    refuse(answer, "not-found", ENOENT, "usage", "no qgroup %s", text);
    return;
  }
  bool none = (strtoul(limited, NULL, 0) & BTRFS_QGROUP_LIMIT_MAX_EXCL) == 0 || strcmp(limit, "18446744073709551615") == 0;
  put(&answer->fields, "bytes", "%s", bytes);
  put(&answer->fields, "limit", "%s", none ? "0" : limit);
}
