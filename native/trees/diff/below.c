/* What an overlay shows of the layers below its upper folder: folders that were renamed, and folders shared with reality. */
#include "diff.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool is_within(const char *path, const char *folder) {
  size_t length = strlen(folder);
  return strncmp(path, folder, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

bool is_shared(const struct diff *diff, const char *path) {
  for (size_t index = 0; index < diff->shared_count; index++)
    if (strcmp(diff->shared[index], path) == 0) return true;
  return false;
}

static bool is_in_shared(const struct diff *diff, const char *path) {
  for (size_t index = 0; index < diff->shared_count; index++)
    if (is_within(path, diff->shared[index])) return true;
  return false;
}

static bool holds_shared(const struct diff *diff, const char *path) {
  for (size_t index = 0; index < diff->shared_count; index++)
    if (is_within(diff->shared[index], path)) return true;
  return false;
}

/* `shared=` names folders of `new`, below `shared_root=`. */
bool open_shared(struct diff *diff, const struct fields *request) {
  const char *root = field(request, "shared_root");
  if (root == NULL) return true;
  diff->shared_root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (diff->shared_root < 0 && !is_gone(errno)) return false;
  for (const char *path = field(request, "shared"); path != NULL && diff->shared_count < MOST_SHARED; path = field_next(request, "shared", path))
    diff->shared[diff->shared_count++] = path;
  return true;
}

/* A sandbox can set attributes of the user's kind where it is not the overlay that uses them, so only the kind of this
   server's mounts counts. */
APART struct lower lower_of(const struct diff *diff, const char *path) {
  struct lower lower = {0};
  bool root = geteuid() == 0;
  int fd = open_beneath(diff->new, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (fd < 0) return lower;
  char value[4096];
  ssize_t length = fgetxattr(fd, root ? "trusted.overlay.opaque" : "user.overlay.opaque", value, sizeof value);
  lower.opaque = length == 1 && value[0] == 'y';
  length = root ? fgetxattr(fd, "trusted.overlay.redirect", value, sizeof value - 1) : -1;
  if (length > 0) {
    value[length] = '\0';
    lower.redirect = strdup(value);
  }
  close(fd);
  return lower;
}

static bool is_hidden(const struct diff *diff, const char *path) {
  for (const char *hidden = field(diff->request, "hidden"); hidden != NULL; hidden = field_next(diff->request, "hidden", hidden))
    if (is_within(path, hidden)) return true;
  return false;
}

/* The root of the layer that has `path`, or -1. What the mask hides inside is not there. */
static int find_below(const struct diff *diff, const char *path, struct stat *status) {
  if (is_hidden(diff, path)) return -1;
  if (diff->overlay) return find_old(diff, path, status);
  return is_in_shared(diff, path) && status_beneath(diff->shared_root, path, status) == 0 ? diff->shared_root : -1;
}

/* An absolute redirect begins at the root of its overlay, which with shared folders is the folder above `new`. */
static const char *after_root(const struct diff *diff, const char *redirect) {
  if (diff->overlay && !diff->nested) return redirect + 1;
  const char *rest = strchr(redirect + 1, '/');
  return rest == NULL ? "." : rest + 1;
}

char *source_of(const struct diff *diff, const char *path, const char *beside, const struct lower *lower) {
  struct stat status;
  size_t name = strlen(path);
  while (name > 0 && path[name - 1] != '/') name--;
  char *source = NULL;
  if (lower->redirect != NULL && lower->redirect[0] == '/') source = strdup(after_root(diff, lower->redirect));
  else if (lower->redirect != NULL) source = below(beside == NULL ? "." : beside, lower->redirect);
  else if (beside != NULL && !lower->opaque) source = below(beside, path + name);
  if (source != NULL && !diff->overlay && holds_shared(diff, source)) return source;
  if (source != NULL && find_below(diff, source, &status) >= 0 && S_ISDIR(status.st_mode)) return source;
  free(source);
  return NULL;
}

bool shows_below(const struct diff *diff, bool merged, const char *source) {
  if (source == NULL) return false;
  return diff->overlay ? !merged : is_in_shared(diff, source);
}

static void shown_from(struct diff *diff, int root, const char *folder, const char *source) {
  struct names names = {0};
  names_beneath(root, source, &names);
  for (size_t at = 0; at < names.count && !diff->full; at++) {
    char *path = below(folder, names.sorted[at]), *from = below(source, names.sorted[at]);
    struct stat status, own;
    bool shown = !is_git(names.sorted[at]) && status_beneath(diff->new, path, &own) != 0 && find_below(diff, from, &status) == root;
    if (shown) {
      report_sides(diff, (struct gather_side){0}, (struct gather_side){root, from, &status}, path);
      if (S_ISDIR(status.st_mode)) all_shown(diff, path, from);
    }
    free(path);
    free(from);
  }
  names_free(&names);
}

void all_shown(struct diff *diff, const char *folder, const char *source) {
  if (!diff->overlay) shown_from(diff, diff->shared_root, folder, source);
  for (size_t index = 0; diff->overlay && index < diff->old_count && !diff->full; index++) shown_from(diff, diff->old[index], folder, source);
}
