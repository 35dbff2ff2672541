/* Builds the mask layer: what of the machine is hidden, replaced or shown through. */
#include "trees.h"
#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PARTS_MAX 6

struct mask {
  int root;
  bool user_names; /* attributes of `user.overlay.` instead of `trusted.overlay.` */
};

static int set_overlay(const struct mask *mask, int fd, const char *name, const char *value) {
  char full[64];
  snprintf(full, sizeof full, "%s.overlay.%s", mask->user_names ? "user" : "trusted", name);
  return fsetxattr(fd, full, value, strlen(value), 0);
}

static bool read_id(const char *text, uint32_t *id, int base) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, base);
  if (errno != 0 || end == text || *end != '\0' || value > UINT32_MAX - 1) return false;
  *id = (uint32_t)value;
  return true;
}

struct owner {
  uint32_t uid, gid, mode;
};

static bool read_owner(char **parts, struct owner *owner) {
  bool good = read_id(parts[2], &owner->uid, 10) && read_id(parts[3], &owner->gid, 10) && read_id(parts[4], &owner->mode, 8);
  if (!good || owner->mode > 07777) errno = EINVAL;
  return good && owner->mode <= 07777;
}

static int set_owner(int fd, const struct owner *owner) {
  if (geteuid() == 0 && fchown(fd, owner->uid, owner->gid) != 0) return -1;
  return fchmod(fd, owner->mode);
}

/* dir, opaque and through; a folder that is there already gets the new properties. */
static int make_folder(const struct mask *mask, int parent, const char *name, char **parts, size_t count) {
  struct owner owner;
  bool opaque = strcmp(parts[0], "opaque") == 0, through = strcmp(parts[0], "through") == 0;
  if (count != (through ? 6u : 5u) || !read_owner(parts, &owner)) {
    errno = EINVAL;
    return -1;
  }
  if (name != NULL && mkdirat(parent, name, 0700) != 0 && errno != EEXIST) return -1;
  int fd = open_beneath(parent, name == NULL ? "." : name, O_RDONLY | O_DIRECTORY);
  int result = fd < 0 ? -1 : 0;
  if (result == 0 && opaque) result = set_overlay(mask, fd, "opaque", "y");
  if (result == 0 && through) result = set_overlay(mask, fd, "redirect", parts[5]);
  if (result == 0) result = set_owner(fd, &owner);
  int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return result;
}

static int make_file(int parent, const char *name, char **parts, size_t count) {
  struct owner owner;
  if (count != 6 || !read_owner(parts, &owner)) {
    errno = EINVAL;
    return -1;
  }
  int fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  int result = write_all(fd, parts[5], strlen(parts[5]));
  if (result == 0) result = set_owner(fd, &owner);
  int error = errno;
  close(fd);
  errno = error;
  return result;
}

static int make_entry(const struct mask *mask, int parent, const char *name, char **parts, size_t count) {
  const char *kind = parts[0];
  if (strcmp(kind, "dir") == 0 || strcmp(kind, "opaque") == 0 || strcmp(kind, "through") == 0) return make_folder(mask, parent, name, parts, count);
  if (name != NULL && strcmp(kind, "file") == 0) return make_file(parent, name, parts, count);
  if (name != NULL && strcmp(kind, "hide") == 0 && count == 2) return mknodat(parent, name, S_IFCHR, makedev(0, 0));
  if (name != NULL && strcmp(kind, "link") == 0 && count == 3) return symlinkat(parts[2], parent, name);
  errno = EINVAL;
  return -1;
}

/* Splits off the last name and opens the folder it belongs in; the name is NULL for the layer's root. */
static int open_place(const struct mask *mask, char *path, const char **name) {
  while (*path == '/') path++;
  size_t length = strlen(path);
  while (length > 0 && path[length - 1] == '/') path[--length] = '\0';
  *name = NULL;
  if (length == 0) return open_beneath(mask->root, ".", O_RDONLY | O_DIRECTORY);
  char *slash = strrchr(path, '/');
  if (slash != NULL) *slash = '\0';
  *name = slash == NULL ? path : slash + 1;
  return open_beneath(mask->root, slash == NULL ? "." : path, O_RDONLY | O_DIRECTORY);
}

static bool carry_out(const struct mask *mask, const char *text, struct answer *answer) {
  char *copy = strdup(text), *parts[PARTS_MAX];
  if (copy == NULL) abort();
  size_t count = split_parts(copy, parts, PARTS_MAX);
  char *path = count > 1 ? strdup(parts[1]) : NULL;
  const char *name;
  int parent = path == NULL ? -1 : open_place(mask, path, &name);
  if (path == NULL) errno = EINVAL;
  if (parent < 0 || make_entry(mask, parent, name, parts, count) != 0) {
    int error = errno;
    refuse(answer, code_of_errno(error), error, "entry", "%s %s: %s", parts[0], count > 1 ? parts[1] : "", strerror(error));
  }
  if (parent >= 0) close(parent);
  free(path);
  free(copy);
  return !answer->failed;
}

void mask_request(const struct fields *request, struct answer *answer) {
  const char *name, *path = required(request, "path", answer);
  int parent;
  if (path == NULL || !open_parent(path, &parent, &name, answer)) return;
  char aside[300];
  snprintf(aside, sizeof aside, ".new-%d", (int)getpid());
  struct mask mask = {.root = -1, .user_names = field_flag(request, "userxattr")};
  if (faccessat(parent, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) refuse(answer, "exists", EEXIST, "path", "%s exists already", path);
  else if (remove_at(parent, aside) != 0 || mkdirat(parent, aside, 0755) != 0) refuse_errno(answer, "path", path);
  else if ((mask.root = open_beneath(parent, aside, O_RDONLY | O_DIRECTORY)) < 0) refuse_errno(answer, "path", path);
  for (const char *entry = field(request, "entry"); entry != NULL && !answer->failed; entry = field_next(request, "entry", entry))
    carry_out(&mask, entry, answer);
  if (mask.root >= 0) close(mask.root);
  if (!answer->failed && renameat2(parent, aside, parent, name, RENAME_NOREPLACE) != 0) refuse_errno(answer, "path", path);
  if (answer->failed && mask.root >= 0) remove_at(parent, aside);
  close(parent);
}
