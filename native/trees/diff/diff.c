/* What differs between a frozen tree and one that a sandbox wrote. Both are walked without ever following a link. */
#include "diff.h"
#include "../trees.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define ROOM_LEFT (64u << 10) /* a reply must stay below FRAME_MAX */

static const char *type_of(mode_t mode) {
  if (S_ISREG(mode)) return "file";
  if (S_ISDIR(mode)) return "dir";
  if (S_ISLNK(mode)) return "link";
  if (S_ISFIFO(mode)) return "fifo";
  if (S_ISSOCK(mode)) return "socket";
  return S_ISCHR(mode) ? "char" : "block";
}

bool is_whiteout(const struct stat *status) { return S_ISCHR(status->st_mode) && status->st_rdev == 0; }

/* One change at `path`: what is new has no old side, what is gone no new one. */
void report_sides(struct diff *diff, struct gather_side old, struct gather_side new, const char *path) {
  char what = old.path == NULL ? 'A' : new.path == NULL ? 'D' : 'M';
  const char *type = type_of(new.path == NULL ? old.status->st_mode : new.status->st_mode);
  if (diff->gathering != NULL) {
    if (!gather_change(diff->gathering, what, type, old, new, path)) diff->full = true;
    return;
  }
  char *row;
  if (asprintf(&row, "%c%c%s%c%s", what, PART, type, PART, path) < 0) abort();
  if (!put_row(&diff->answer->fields, "row", row, FRAME_MAX - ROOM_LEFT)) diff->full = true;
  free(row);
}

/* `root` is where the old one lies; NULL: no such side. */
static void report(struct diff *diff, int root, const struct stat *old, const struct stat *new, const char *path) {
  struct gather_side was = {root, old == NULL ? NULL : path, old}, is = {diff->new, new == NULL ? NULL : path, new};
  report_sides(diff, was, is, path);
}

int status_beneath(int root, const char *path, struct stat *status) {
  int fd = open_beneath(root, path, O_PATH | O_NOFOLLOW);
  if (fd < 0) return -1;
  int result = fstat(fd, status);
  close(fd);
  return result;
}

/* A whiteout or a non-folder above ends the search. */
int find_old(const struct diff *diff, const char *path, struct stat *status) {
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

char *below(const char *folder, const char *name) {
  char *path;
  if (asprintf(&path, strcmp(folder, ".") == 0 ? "%s%s" : "%s/%s", strcmp(folder, ".") == 0 ? "" : folder, name) < 0) abort();
  return path;
}

bool is_gone(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

bool names_beneath(int root, const char *folder, struct names *names) {
  int fd = open_beneath(root, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  bool read = fd >= 0 && names_read(fd, names) == 0;
  bool gone = !read && is_gone(errno);
  if (!read) names->count = 0;
  if (fd >= 0) close(fd);
  return read || gone;
}

bool is_git(const char *name) { return strcasecmp(name, ".git") == 0; }

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
        report(diff, diff->old[index], &status, NULL, path);
        if (S_ISDIR(status.st_mode)) all_deleted(diff, path);
      }
      free(path);
    }
    names_free(&names);
  }
}

static unsigned compare_folder(struct diff *diff, const char *folder, bool merged, const char *source);

enum { KEPT = 1, MOVED = 2 }; /* a folder has something untouched; something in it came or went */

static unsigned compare_overlaid(struct diff *diff, const char *path, bool both_folders, const char *beside) {
  struct lower lower = lower_of(diff, path);
  char *source = source_of(diff, path, beside, &lower);
  bool merged = both_folders && source != NULL && strcmp(source, path) == 0;
  if (both_folders && !merged) all_deleted(diff, path);
  unsigned found = compare_folder(diff, path, merged, source);
  free(source);
  free(lower.redirect);
  return merged ? found : found | MOVED;
}

static unsigned compare_shared(struct diff *diff, const char *path, bool both_folders, const char *beside) {
  struct lower lower = lower_of(diff, path);
  char *source = source_of(diff, path, beside, &lower);
  unsigned found = compare_folder(diff, path, both_folders, source);
  free(source);
  free(lower.redirect);
  return found;
}

/* `source` is where the content of the entry's folder lies below, in an overlay. */
static unsigned compare_entry(struct diff *diff, const char *path, bool merged, const char *source) {
  struct stat old, new;
  if (is_shared(diff, path)) return 0;
  if (status_beneath(diff->new, path, &new) != 0) {
    diff->unseen |= !is_gone(errno);
    return 0;
  }
  int root = merged ? find_old(diff, path, &old) : -1;
  bool was_folder = root >= 0 && S_ISDIR(old.st_mode);
  if ((diff->overlay || diff->shared_count > 0) && is_whiteout(&new)) {
    if (root < 0) return 0;
    report(diff, root, &old, NULL, path);
    if (was_folder) all_deleted(diff, path);
    return MOVED;
  }
  bool same = root >= 0 && same_entry(diff, root, path, &old, &new);
  if (!same) report(diff, root, root < 0 ? NULL : &old, &new, path);
  if (was_folder && !S_ISDIR(new.st_mode)) all_deleted(diff, path);
  if (!S_ISDIR(new.st_mode)) return same ? KEPT : was_folder || root < 0 ? MOVED : 0;
  bool both_folders = was_folder && S_ISDIR(new.st_mode);
  unsigned found = diff->overlay            ? compare_overlaid(diff, path, both_folders, source)
                   : diff->shared_count > 0 ? compare_shared(diff, path, both_folders, source)
                                            : compare_folder(diff, path, both_folders, NULL);
  return both_folders ? found : found | MOVED;
}

/* As it is in `sorted`, or NULL. */
static const char *find_name(const struct names *names, const char *name) {
  size_t low = 0, high = names->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    int order = strcmp(names->sorted[middle], name);
    if (order == 0) return names->sorted[middle];
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return NULL;
}

/* Goes through what the frozen side has in a folder and the new side does not: gone in a full copy, untouched in an overlay. */
static unsigned compare_missing(struct diff *diff, const char *folder, const struct names *new) {
  unsigned found = 0;
  for (size_t index = 0; index < diff->old_count && !diff->full; index++) {
    struct names old = {0};
    names_beneath(diff->old[index], folder, &old);
    for (size_t at = 0; at < old.count && !diff->full; at++) {
      if (is_git(old.sorted[at]) || find_name(new, old.sorted[at]) != NULL) continue;
      char *path = below(folder, old.sorted[at]);
      struct stat status;
      if (find_old(diff, path, &status) == diff->old[index]) {
        found |= diff->overlay ? KEPT : MOVED;
        if (!diff->overlay) report(diff, diff->old[index], &status, NULL, path);
        if (!diff->overlay && S_ISDIR(status.st_mode)) all_deleted(diff, path);
      }
      free(path);
    }
    names_free(&old);
  }
  return found;
}

/* What both open folders tell of a folder without a look at each entry on its own. Most files of a large project are found so. */
struct common {
  bool *files;     /* for each name: an untouched file */
  bool same_names; /* nothing came into the folder and nothing left it */
};

/* Where the folder itself is untouched, its entries are the ones that they were. It must be the same one, because what lies in a folder
   that was moved is itself untouched. */
static bool is_same_folder(const struct diff *diff, int old, int new) {
  struct stat was, is;
  return diff->touched.known && fstat(old, &was) == 0 && fstat(new, &is) == 0 && was.st_ino == is.st_ino &&
         !touched_has(&diff->touched, is.st_ino);
}

static bool is_untouched_file(int old, int new, const char *name) {
  struct stat was, is;
  return fstatat(new, name, &is, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(is.st_mode) && fstatat(old, name, &was, AT_SYMLINK_NOFOLLOW) == 0 &&
         untouched(&was, &is);
}

/* A file that no transaction changed since is the one that it was, where it was. */
static bool is_unlisted_file(const struct diff *diff, const char *name) {
  unsigned char type = name_type(name);
  return type != DT_DIR && type != DT_UNKNOWN && !touched_has(&diff->touched, name_inode(name));
}

static void compare_statuses(int old, int new, const struct names *names, bool *files) {
  for (size_t at = 0; at < names->count; at++) files[at] = is_untouched_file(old, new, names->sorted[at]);
}

/* As compare_statuses, where it is known which inodes can differ. */
static void compare_inodes(const struct diff *diff, int old, const struct names *names, bool *files) {
  struct names before = {0};
  if (names_read(old, &before) != 0) before.count = 0;
  for (size_t at = 0; at < names->count; at++) {
    const char *name = find_name(&before, names->sorted[at]);
    files[at] = name != NULL && name_inode(name) == name_inode(names->sorted[at]) && is_unlisted_file(diff, names->sorted[at]);
  }
  names_free(&before);
}

static struct common common_of(const struct diff *diff, const char *folder, const struct names *names) {
  struct common common = {.files = calloc(names->count + 1, sizeof *common.files)};
  if (common.files == NULL) abort();
  int old = open_beneath(diff->old[0], folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  int new = open_beneath(diff->new, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  bool both = old >= 0 && new >= 0;
  common.same_names = both && is_same_folder(diff, old, new);
  if (common.same_names)
    for (size_t at = 0; at < names->count; at++) common.files[at] = is_unlisted_file(diff, names->sorted[at]);
  else if (both && diff->touched.known) compare_inodes(diff, old, names, common.files);
  else if (both) compare_statuses(old, new, names, common.files);
  if (old >= 0) close(old);
  if (new >= 0) close(new);
  return common;
}

static unsigned compare_folder(struct diff *diff, const char *folder, bool merged, const char *source) {
  struct names new = {0};
  struct common common = {0};
  unsigned found = 0;
  if (!names_beneath(diff->new, folder, &new)) diff->unseen = true;
  else if (merged && !diff->overlay && diff->old_count == 1) common = common_of(diff, folder, &new);
  for (size_t at = 0; at < new.count && !diff->full; at++) {
    if (is_git(new.sorted[at])) continue;
    if (common.files != NULL && common.files[at]) {
      found |= KEPT;
      continue;
    }
    char *path = below(folder, new.sorted[at]);
    found |= compare_entry(diff, path, merged, source);
    free(path);
  }
  bool missing = !diff->overlay ? !common.same_names : diff->gathering != NULL && (found & MOVED);
  if (merged && missing) found |= compare_missing(diff, folder, &new);
  if (shows_below(diff, merged, source)) all_shown(diff, folder, source);
  if (merged && diff->gathering != NULL && found == (KEPT | MOVED)) gather_kept(diff->gathering, folder);
  free(common.files);
  names_free(&new);
  return found;
}

/* Compares one folder of an overlay alone. What lies above it may have been moved or replaced. */
static void compare_at(struct diff *diff, const char *at) {
  char *prefix = strdup(at), *source = strdup(".");
  bool replaced = false;
  if (prefix == NULL || source == NULL) abort();
  for (size_t end = strcspn(at, "/");; end += 1 + strcspn(at + end + 1, "/")) {
    struct stat status;
    memcpy(prefix, at, end);
    prefix[end] = '\0';
    bool there = status_beneath(diff->new, prefix, &status) == 0;
    if (!there && !replaced && errno == ENOENT) break; /* untouched: all of it shows from below */
    if (!there || !S_ISDIR(status.st_mode)) {
      all_deleted(diff, at);
      break;
    }
    struct lower lower = lower_of(diff, prefix);
    char *next = source_of(diff, prefix, source, &lower);
    free(source);
    source = next;
    replaced = source == NULL || strcmp(source, prefix) != 0;
    free(lower.redirect);
    if (at[end] != '\0') continue;
    if (replaced) all_deleted(diff, at);
    compare_folder(diff, at, !replaced, source);
    break;
  }
  free(source);
  free(prefix);
}

/* A layer in which a root did not change is not there. */
static bool open_sides(struct diff *diff, const struct fields *request) {
  diff->new = open(field(request, "new"), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (diff->new < 0) return false;
  for (const char *old = field(request, "old"); old != NULL && diff->old_count < MOST_OLD; old = field_next(request, "old", old)) {
    int fd = open(old, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) continue;
    if (fd < 0) return false;
    diff->old[diff->old_count++] = fd;
  }
  return open_shared(diff, request);
}

void diff_request(const struct fields *request, struct answer *answer) {
  struct diff diff = {.overlay = field_flag(request, "overlay"), .answer = answer, .new = -1, .shared_root = -1};
  const char *new = required(request, "new", answer), *at = field(request, "at");
  if (new == NULL || required(request, "old", answer) == NULL) return;
  diff.nested = at != NULL;
  diff.request = request;
  if (!open_sides(&diff, request)) refuse_errno(answer, "diff", new);
  else if ((diff.gathering = gather_open(request, answer)) != NULL || !answer->failed) {
    if (!diff.overlay && diff.old_count == 1) touched_read(&diff.touched, diff.old[0], diff.new, field(request, "origin"));
    if (at != NULL && diff.overlay) compare_at(&diff, at);
    else compare_folder(&diff, ".", true, ".");
    if (diff.full || diff.unseen) put(&answer->fields, "more", "1");
    if (diff.touched.known) put(&answer->fields, "touched", "%zu", diff.touched.count);
    gather_close(diff.gathering, answer);
  }
  touched_free(&diff.touched);
  if (diff.new >= 0) close(diff.new);
  if (diff.shared_root >= 0) close(diff.shared_root);
  for (size_t index = 0; index < diff.old_count; index++) close(diff.old[index]);
}
