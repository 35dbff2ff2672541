/* Carries out the `tree=` and `mount=` lists: in root mode the launcher does, in user mode process 1 does. */
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int new_filesystem(const char *type, const char *const *options, unsigned attributes) {
  int context = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
  if (context < 0) return -1;
  int mounted = 0;
  for (; mounted == 0 && *options != NULL; options += 2)
    mounted = (int)syscall(SYS_fsconfig, context, options[1] == NULL ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING, options[0], options[1], 0);
  if (mounted == 0) mounted = (int)syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
  if (mounted == 0) mounted = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes);
  int error = errno;
  close(context);
  errno = error;
  return mounted;
}

/* Trees and bind sources are opened before the first mount on STACK covers what lies there. */
int open_sources(struct launch *launch) {
  for (size_t i = 0; i < launch->tree_count; i++) {
    struct tree *tree = &launch->trees[i];
    if (launch->root_mode) tree->fd = call_open_tree(AT_FDCWD, tree->path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    else tree->fd = open(tree->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (tree->fd < 0) return failed(launch, "tree %.120s", tree->path);
  }
  for (size_t i = 0; i < launch->mount_count; i++) {
    struct mount_entry *entry = &launch->mounts[i];
    if (strcmp(entry->parts[0], "bind") != 0 || entry->parts[2][0] == '@') continue;
    entry->source = open(entry->parts[2], O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (entry->source < 0) return failed(launch, "mount bind %.120s", entry->parts[2]);
  }
  return 0;
}

/* Gives every tree the ids of the child's user namespace and attaches it: an overlay takes only attached mounts as layers.
   No access times: reading inside must write neither to the host's disk nor to a fresh snapshot. */
int map_trees(struct launch *launch, pid_t child) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/ns/user", child);
  int userns = open(path, O_RDONLY | O_CLOEXEC);
  if (userns < 0) return failed(launch, "user namespace");
  struct mount_attr attributes = {
    .attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME,
    .attr_clr = MOUNT_ATTR__ATIME,
    .userns_fd = (uint64_t)userns,
  };
  for (size_t i = 0; i < launch->tree_count; i++) {
    struct tree *tree = &launch->trees[i];
    if (call_mount_setattr(tree->fd, AT_EMPTY_PATH, &attributes) != 0) return failed(launch, "id map %.120s", tree->path);
    if (call_move_mount(tree->fd, AT_FDCWD, STACK, 0) != 0) return failed(launch, "attach %.120s", tree->path);
  }
  close(userns);
  return 0;
}

/* `@name/rest`; below a tree no link is followed. A plain path might be covered by now, so it names no tree either. */
static int open_source(struct launch *launch, const char *source) {
  size_t length = source[0] == '@' ? strcspn(source + 1, "/") : 0;
  const char *rest = length == 0 ? "" : source + 1 + length + strspn(source + 1 + length, "/");
  struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  for (size_t i = 0; i < launch->tree_count; i++) {
    const struct tree *tree = &launch->trees[i];
    if (length == 0 || strncmp(tree->name, source + 1, length) != 0 || tree->name[length] != '\0') continue;
    if (*rest == '\0') return fcntl(tree->fd, F_DUPFD_CLOEXEC, 3); /* even a folder the caller may not search */
    return (int)syscall(SYS_openat2, tree->fd, rest, &how, sizeof how);
  }
  errno = EINVAL;
  launch->message = "a mount names a tree that is not in the request";
  return -1;
}

/* Layers are named by descriptor: no escaping of commas and colons, and no host path in /proc/mounts inside. */
static int add_layer(struct launch *launch, char *options, size_t size, const char *separator, const char *source) {
  size_t used = strlen(options);
  int fd = open_source(launch, source);
  if (fd < 0) return failed(launch, "overlay layer %.120s", source);
  if (snprintf(options + used, size - used, "%s/proc/self/fd/%d", separator, fd) < (int)(size - used)) return fd;
  errno = E2BIG;
  return failed(launch, "overlay layer %.120s", source);
}

static int mount_overlay(struct launch *launch, const struct mount_entry *entry, const char *where) {
  char options[4096] = "";
  int layers[LAYERS_MOST + 4];
  size_t count = 0;
  for (size_t i = 4; i < entry->count; i++)
    if ((layers[count++] = add_layer(launch, options, sizeof options, i == 4 ? "lowerdir=" : ":", entry->parts[i])) < 0) return -1;
  if (entry->parts[2][0] != '\0') {
    if ((layers[count++] = add_layer(launch, options, sizeof options, ",upperdir=", entry->parts[2])) < 0) return -1;
    if ((layers[count++] = add_layer(launch, options, sizeof options, ",workdir=", entry->parts[3])) < 0) return -1;
  }
  /* Inside a user namespace the kernel refuses trusted attributes, and with them redirects. With xino the kernel puts the
     number of the layer's file system into the topmost bits of inode numbers: a program that keeps them as floating-point
     numbers, as JavaScript does, then takes neighbours for hard links of one file. Without it files keep the numbers of
     their file system, and a device number each; folders get numbers that hold while the kernel knows them. */
  const char *how = launch->root_mode ? ",redirect_dir=on,index=off,xino=off" : ",userxattr,index=off,xino=off";
  if (strlen(options) + strlen(how) < sizeof options) strcat(options, how);
  unsigned long flags = MS_NODEV | MS_NOATIME | (launch->keep_privileges ? 0 : MS_NOSUID);
  int result = call_mount("overlay", where, "overlay", flags, options);
  int error = errno;
  while (count > 0) close(layers[--count]);
  errno = error;
  if (result == 0) return 0;
  if (error == EINVAL && !launch->root_mode) launch->message = "the kernel refused the layers; a lower folder that holds other mounts cannot be one";
  if (error == ELOOP) launch->message = "layers contain each other";
  return failed(launch, "mount overlay %.120s", entry->parts[1]);
}

static int bind_source(struct launch *launch, struct mount_entry *entry) {
  int source = entry->source >= 0 ? entry->source : open_source(launch, entry->parts[2]);
  if (source < 0) return -1;
  int copy = call_open_tree(source, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
  int error = errno;
  close(source);
  errno = error;
  return copy;
}

static int mount_bind(struct launch *launch, struct mount_entry *entry, int target) {
  struct mount_attr attributes = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
  if (strstr(entry->parts[3], "ro") != NULL) attributes.attr_set |= MOUNT_ATTR_RDONLY;
  int copy = bind_source(launch, entry);
  if (copy < 0) return -1;
  int result = call_mount_setattr(copy, AT_EMPTY_PATH, &attributes);
  if (result == 0) result = call_move_mount(copy, target, "", MOVE_MOUNT_T_EMPTY_PATH);
  int error = errno;
  close(copy);
  errno = error;
  return result;
}

static int mount_tmpfs(const char *mode, const char *size, int target) {
  const char *options[] = {"mode", mode, *size == '\0' ? NULL : "size", size, NULL};
  int fd = new_filesystem("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  if (fd < 0) return -1;
  int result = call_move_mount(fd, target, "", MOVE_MOUNT_T_EMPTY_PATH);
  int error = errno;
  close(fd);
  errno = error;
  return result;
}

static int make_mount(struct launch *launch, struct mount_entry *entry, int root) {
  const char *kind = entry->parts[0], *target = entry->parts[1];
  if (strcmp(kind, "symlink") == 0) return make_link(root, target, entry->parts[2]);
  bool is_file = strcmp(kind, "bind") == 0 && strstr(entry->parts[3], "file") != NULL;
  mode_t mode = strcmp(kind, "dir") == 0 ? (mode_t)strtoul(entry->parts[2], NULL, 8) : is_file ? 0644 : 0755;
  int place = open_target(root, target, !is_file, mode);
  if (place < 0) return -1;
  int result = 0;
  if (strcmp(kind, "bind") == 0) result = mount_bind(launch, entry, place);
  if (strcmp(kind, "tmpfs") == 0) result = mount_tmpfs(entry->parts[2], entry->parts[3], place);
  if (strcmp(kind, "overlay") == 0) {
    char where[32];
    snprintf(where, sizeof where, "/proc/self/fd/%d", place);
    result = mount_overlay(launch, entry, where);
  }
  int error = errno;
  close(place);
  errno = error;
  return result;
}

static bool is_unseen(const struct mount_entry *entry) { return entry->parts[1][0] == '@'; }

/* An overlay that no sandbox sees as a whole: it becomes a tree, and binds show parts of it. It is attached where the root
   will cover it, because the kernel clones parts of attached mounts only. */
static int mount_unseen(struct launch *launch, const struct mount_entry *entry) {
  if (launch->tree_count == TREES_MOST) {
    errno = E2BIG;
    return failed(launch, "mount overlay %.120s", entry->parts[1]);
  }
  if (mount_overlay(launch, entry, STACK) != 0) return -1;
  int fd = open(STACK, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failed(launch, "mount overlay %.120s", entry->parts[1]);
  launch->trees[launch->tree_count++] = (struct tree){.name = entry->parts[1] + 1, .path = STACK, .fd = fd};
  return 0;
}

static int mount_root(struct launch *launch) {
  for (size_t i = 0; i < launch->mount_count; i++)
    if (is_unseen(&launch->mounts[i]) && mount_unseen(launch, &launch->mounts[i]) != 0) return -1;
  if (!launch->tmpfs_root) return mount_overlay(launch, &launch->mounts[0], STACK);
  int place = open(STACK, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (place < 0 || mount_tmpfs("755", "", place) != 0) return failed(launch, "mount tmpfs /");
  close(place);
  return 0;
}

int make_mounts(struct launch *launch) {
  if (mount_root(launch) != 0) return -1;
  int root = open(STACK, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return failed(launch, "open root");
  for (size_t i = launch->tmpfs_root ? 0 : 1; i < launch->mount_count; i++) {
    struct mount_entry *entry = &launch->mounts[i];
    if (is_unseen(entry) || make_mount(launch, entry, root) == 0) continue;
    if (launch->error != 0) return -1;
    if (errno == ELOOP || errno == ENOTDIR) launch->message = "a symbolic link or a file is where the target needs a folder";
    return failed(launch, "mount %s %.120s", entry->parts[0], entry->parts[1]);
  }
  close(root);
  return 0;
}
