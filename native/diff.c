/* What differs between a frozen tree and one that a sandbox wrote. Both are walked without ever following a link. */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ROOM_LEFT (64u << 10) /* a reply must stay below FRAME_MAX */
#define MOST_OLD 64

/* The walk calls itself up to two thousand times, so what needs much room on the stack stays out of its frames. */
#define APART __attribute__((noinline))

/* `old` may be a stack of layers, topmost first; `new` is then the upper folder of an overlay over them. */
struct diff {
  int old[MOST_OLD];
  size_t old_count;
  int new;
  bool overlay;
  struct answer *answer;
  bool full;   /* the reply has no room left */
  bool unseen; /* something lies deeper than a path can name, or is closed to us */
};

static const char *type_of(mode_t mode) {
  if (S_ISREG(mode)) return "file";
  if (S_ISDIR(mode)) return "dir";
  if (S_ISLNK(mode)) return "link";
  if (S_ISFIFO(mode)) return "fifo";
  if (S_ISSOCK(mode)) return "socket";
  return S_ISCHR(mode) ? "char" : "block";
}

static bool is_whiteout(const struct stat *status) { return S_ISCHR(status->st_mode) && status->st_rdev == 0; }

static void report(struct diff *diff, char what, mode_t mode, const char *path) {
  char *row;
  if (asprintf(&row, "%c%c%s%c%s", what, PART, type_of(mode), PART, path) < 0) abort();
  if (!put_row(&diff->answer->fields, "row", row, FRAME_MAX - ROOM_LEFT)) diff->full = true;
  free(row);
}

/* Status of a path below a root: 0, or -1 with errno. */
static int status_beneath(int root, const char *path, struct stat *status) {
  int fd = open_beneath(root, path, O_PATH | O_NOFOLLOW);
  if (fd < 0) return -1;
  int result = fstat(fd, status);
  close(fd);
  return result;
}

/* Where the frozen side has `path`: a root descriptor, or -1. A whiteout or a non-folder above ends the search. */
static int find_old(const struct diff *diff, const char *path, struct stat *status) {
  for (size_t index = 0; index < diff->old_count; index++) {
    if (status_beneath(diff->old[index], path, status) == 0) return is_whiteout(status) ? -1 : diff->old[index];
    if (errno == ENOTDIR) return -1;
  }
  return -1;
}

static bool same_bytes(int left, int right) {
  char *buffers = malloc(2 * CHUNK_MAX);
  if (buffers == NULL) abort();
  bool same = true;
  for (off_t at = 0; same;) {
    ssize_t count = pread(left, buffers, CHUNK_MAX, at);
    if (count <= 0) break;
    ssize_t other = 0;
    while (other < count) {
      ssize_t more = pread(right, buffers + CHUNK_MAX + other, (size_t)(count - other), at + other);
      if (more <= 0) break;
      other += more;
    }
    same = other == count && memcmp(buffers, buffers + CHUNK_MAX, (size_t)count) == 0;
    at += count;
  }
  free(buffers);
  return same;
}

static bool same_file(int old_root, int new_root, const char *path) {
  int left = open_beneath(old_root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  int right = open_beneath(new_root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  bool same = left >= 0 && right >= 0 && same_bytes(left, right);
  if (left >= 0) close(left);
  if (right >= 0) close(right);
  return same;
}

APART static bool same_link(int old_root, int new_root, const char *path) {
  char left[4096], right[4096];
  int old = open_beneath(old_root, path, O_PATH | O_NOFOLLOW), new = open_beneath(new_root, path, O_PATH | O_NOFOLLOW);
  ssize_t left_length = old < 0 ? -1 : readlinkat(old, "", left, sizeof left);
  ssize_t right_length = new < 0 ? -1 : readlinkat(new, "", right, sizeof right);
  if (old >= 0) close(old);
  if (new >= 0) close(new);
  return left_length >= 0 && left_length == right_length && memcmp(left, right, (size_t)left_length) == 0;
}

/* Inode and change time are kept by a snapshot and can't be set from inside: equal ones prove an untouched file. */
static bool untouched(const struct stat *old, const struct stat *new) {
  return old->st_ino == new->st_ino && old->st_size == new->st_size && old->st_ctim.tv_sec == new->st_ctim.tv_sec &&
         old->st_ctim.tv_nsec == new->st_ctim.tv_nsec && old->st_mode == new->st_mode;
}

static bool same_entry(const struct diff *diff, int old_root, const char *path, const struct stat *old, const struct stat *new) {
  if ((old->st_mode & S_IFMT) != (new->st_mode & S_IFMT)) return false;
  if (S_ISDIR(new->st_mode)) return true;
  if (!diff->overlay && untouched(old, new)) return true;
  if (S_ISLNK(new->st_mode)) return same_link(old_root, diff->new, path);
  if (!S_ISREG(new->st_mode)) return old->st_rdev == new->st_rdev;
  return old->st_size == new->st_size && (old->st_mode & 0100) == (new->st_mode & 0100) && same_file(old_root, diff->new, path);
}

static char *below(const char *folder, const char *name) {
  char *path;
  if (asprintf(&path, strcmp(folder, ".") == 0 ? "%s%s" : "%s/%s", strcmp(folder, ".") == 0 ? "" : folder, name) < 0) abort();
  return path;
}

static bool is_gone(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

/* Reads a folder's names; a folder that is not there has none. False: it is there, but can't be read. */
static bool names_beneath(int root, const char *folder, struct names *names) {
  int fd = open_beneath(root, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  bool read = fd >= 0 && names_read(fd, names) == 0;
  bool gone = !read && is_gone(errno);
  if (!read) names->count = 0;
  if (fd >= 0) close(fd);
  return read || gone;
}

static bool is_git(const char *name) { return strcasecmp(name, ".git") == 0; }

/* Everything the frozen side had below a folder that is gone. */
static void all_deleted(struct diff *diff, const char *folder) {
  for (size_t index = 0; index < diff->old_count && !diff->full; index++) {
    struct names names = {0};
    names_beneath(diff->old[index], folder, &names);
    for (size_t at = 0; at < names.count && !diff->full; at++) {
      char *path = below(folder, names.sorted[at]);
      struct stat status;
      /* Only the topmost layer that has the name speaks for it. */
      if (!is_git(names.sorted[at]) && find_old(diff, path, &status) == diff->old[index]) {
        report(diff, 'D', status.st_mode, path);
        if (S_ISDIR(status.st_mode)) all_deleted(diff, path);
      }
      free(path);
    }
    names_free(&names);
  }
}

static void compare_folder(struct diff *diff, const char *folder, bool merged);

static bool is_opaque(const struct diff *diff, const char *path) {
  int fd = open_beneath(diff->new, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (fd < 0) return false;
  char value[2];
  bool opaque = (fgetxattr(fd, "trusted.overlay.opaque", value, sizeof value) == 1 && value[0] == 'y') ||
                (fgetxattr(fd, "user.overlay.opaque", value, sizeof value) == 1 && value[0] == 'y');
  close(fd);
  return opaque;
}

/* What a renamed folder keeps in its attribute: an absolute path, or its old name beside it. False: it was not renamed. */
static bool read_redirect(const struct diff *diff, const char *path, char *value, size_t room) {
  int fd = open_beneath(diff->new, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  ssize_t length = fd < 0 ? -1 : fgetxattr(fd, "trusted.overlay.redirect", value, room - 1);
  if (fd >= 0) close(fd);
  value[length < 0 ? 0 : length] = '\0';
  return length > 0;
}

APART static bool is_moved(const struct diff *diff, const char *path) {
  char value[4096];
  return read_redirect(diff, path, value, sizeof value);
}

/* Where the frozen side has what the overlay shows below a folder that was renamed; NULL if it was not. Its parents may
   have been renamed, too, so the way is gone from the top. */
APART static char *moved_from(const struct diff *diff, const char *path) {
  char redirect[4096];
  if (!read_redirect(diff, path, redirect, sizeof redirect)) return NULL;
  char *from = strdup("."), *partial = strdup(path);
  if (from == NULL || partial == NULL) abort();
  for (char *name = partial, *slash; name != NULL; name = slash == NULL ? NULL : slash + 1) {
    if ((slash = strchr(name, '/')) != NULL) *slash = '\0';
    bool renamed = read_redirect(diff, partial, redirect, sizeof redirect);
    char *next = renamed && redirect[0] == '/' ? strdup(redirect + 1) : below(from, renamed ? redirect : name);
    if (next == NULL) abort();
    free(from);
    from = next;
    if (slash != NULL) *slash = '/';
  }
  free(partial);
  return from;
}

/* What came along with a renamed folder: the upper folder holds only what was changed in it since. */
static void all_moved(struct diff *diff, const char *folder, const char *from) {
  for (size_t index = 0; index < diff->old_count && !diff->full; index++) {
    struct names names = {0};
    names_beneath(diff->old[index], from, &names);
    for (size_t at = 0; at < names.count && !diff->full; at++) {
      char *path = below(folder, names.sorted[at]), *source = below(from, names.sorted[at]);
      struct stat old, upper;
      if (!is_git(names.sorted[at]) && find_old(diff, source, &old) == diff->old[index]) {
        bool changed = status_beneath(diff->new, path, &upper) == 0;
        if (!changed) report(diff, 'A', old.st_mode, path);
        bool merged = !changed || (S_ISDIR(upper.st_mode) && !is_opaque(diff, path) && !is_moved(diff, path));
        if (S_ISDIR(old.st_mode) && merged) all_moved(diff, path, source);
      }
      free(path);
      free(source);
    }
    names_free(&names);
  }
}

static void compare_entry(struct diff *diff, const char *path, bool merged) {
  struct stat old, new;
  if (status_beneath(diff->new, path, &new) != 0) {
    diff->unseen |= !is_gone(errno);
    return;
  }
  int root = merged ? find_old(diff, path, &old) : -1;
  if (diff->overlay && is_whiteout(&new)) {
    if (root < 0) return;
    report(diff, 'D', old.st_mode, path);
    if (S_ISDIR(old.st_mode)) all_deleted(diff, path);
    return;
  }
  bool both_folders = root >= 0 && S_ISDIR(old.st_mode) && S_ISDIR(new.st_mode);
  if (root < 0) report(diff, 'A', new.st_mode, path);
  else if (!same_entry(diff, root, path, &old, &new)) report(diff, 'M', new.st_mode, path);
  if (root >= 0 && S_ISDIR(old.st_mode) && !S_ISDIR(new.st_mode)) all_deleted(diff, path);
  if (!S_ISDIR(new.st_mode)) return;
  char *from = diff->overlay ? moved_from(diff, path) : NULL;
  bool replaced = from != NULL || (diff->overlay && is_opaque(diff, path));
  if (both_folders && replaced) all_deleted(diff, path);
  compare_folder(diff, path, both_folders && !replaced);
  if (from != NULL) all_moved(diff, path, from);
  free(from);
}

static void compare_folder(struct diff *diff, const char *folder, bool merged) {
  struct names new = {0}, old = {0};
  if (!names_beneath(diff->new, folder, &new)) diff->unseen = true;
  for (size_t at = 0; at < new.count && !diff->full; at++) {
    if (is_git(new.sorted[at])) continue;
    char *path = below(folder, new.sorted[at]);
    compare_entry(diff, path, merged);
    free(path);
  }
  /* In an overlay what is gone has a whiteout; in a full copy it is simply not there. */
  if (merged && !diff->overlay) {
    names_beneath(diff->old[0], folder, &old);
    for (size_t at = 0, next = 0; at < old.count && !diff->full; at++) {
      while (next < new.count && strcmp(new.sorted[next], old.sorted[at]) < 0) next++;
      if (is_git(old.sorted[at]) || (next < new.count && strcmp(new.sorted[next], old.sorted[at]) == 0)) continue;
      char *path = below(folder, old.sorted[at]);
      struct stat status;
      if (status_beneath(diff->old[0], path, &status) == 0) {
        report(diff, 'D', status.st_mode, path);
        if (S_ISDIR(status.st_mode)) all_deleted(diff, path);
      }
      free(path);
    }
  }
  names_free(&new);
  names_free(&old);
}

void diff_request(const struct fields *request, struct answer *answer) {
  struct diff diff = {.overlay = field_flag(request, "overlay"), .answer = answer, .new = -1};
  const char *new = required(request, "new", answer);
  if (new == NULL || required(request, "old", answer) == NULL) return;
  diff.new = open(new, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  bool opened = diff.new >= 0;
  for (const char *old = field(request, "old"); opened && old != NULL && diff.old_count < MOST_OLD; old = field_next(request, "old", old)) {
    int fd = open(old, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) continue; /* a layer in which this root did not change */
    if (fd < 0) opened = false;
    else diff.old[diff.old_count++] = fd;
  }
  if (!opened) refuse_errno(answer, "diff", new);
  else {
    compare_folder(&diff, ".", true);
    if (diff.full || diff.unseen) put(&answer->fields, "more", "1");
  }
  if (diff.new >= 0) close(diff.new);
  for (size_t index = 0; index < diff.old_count; index++) close(diff.old[index]);
}
