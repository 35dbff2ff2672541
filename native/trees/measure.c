/* How many entries and bytes a tree has, up to a bound. */
#include "trees.h"
#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct measure {
  int64_t entries, bytes, most;
  bool complete;
  char **folders; /* still to be read, relative to the root */
  size_t count, room;
};

static void later(struct measure *measure, const char *folder, const char *name) {
  if (measure->count == measure->room) {
    size_t room = measure->room == 0 ? 64 : measure->room * 2;
    char **grown = realloc(measure->folders, room * sizeof *grown);
    if (grown == NULL) abort();
    measure->folders = grown;
    measure->room = room;
  }
  char *path;
  if (asprintf(&path, strcmp(folder, ".") == 0 ? "%s%s" : "%s/%s", strcmp(folder, ".") == 0 ? "" : folder, name) < 0) abort();
  measure->folders[measure->count++] = path;
}

static void measure_folder(struct measure *measure, int root, const char *folder, struct names *names) {
  int fd = open_beneath(root, folder, O_RDONLY | O_DIRECTORY);
  if (fd < 0 || names_read(fd, names) != 0) {
    if (fd >= 0) close(fd);
    /* Another mount is not part of the tree; what cannot be read makes the figure a lower bound. */
    if (errno != EXDEV && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) measure->complete = false;
    return;
  }
  for (size_t index = 0; index < names->count; index++) {
    struct stat status;
    if (fstatat(fd, names->sorted[index], &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (measure->entries >= measure->most) {
      measure->complete = false;
      break;
    }
    measure->entries++;
    if (S_ISREG(status.st_mode)) measure->bytes += status.st_size;
    if (S_ISDIR(status.st_mode)) later(measure, folder, names->sorted[index]);
  }
  close(fd);
}

static bool measure_path(const char *path, struct measure *measure) {
  int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return false;
  struct names names = {0};
  measure->complete = true;
  later(measure, ".", ".");
  while (measure->count > 0) {
    char *folder = measure->folders[--measure->count];
    if (measure->entries < measure->most) measure_folder(measure, root, folder, &names);
    else measure->complete = false;
    free(folder);
  }
  names_free(&names);
  free(measure->folders);
  close(root);
  return true;
}

void tree_measure(const struct fields *request, struct answer *answer) {
  int64_t most = INT64_MAX;
  if (required(request, "path", answer) == NULL) return;
  if (field(request, "entries") != NULL && (!field_number(request, "entries", &most) || most < 0)) {
    refuse(answer, "bad-request", EINVAL, "request", "entries must be a number");
    return;
  }
  bool several = field_count(request, "path") > 1;
  for (const char *path = field(request, "path"); path != NULL; path = field_next(request, "path", path)) {
    struct measure measure = {.most = most};
    bool exists = measure_path(path, &measure);
    if (!exists && !several) {
      refuse_errno(answer, "measure", path);
      return;
    }
    if (several) {
      put(&answer->fields, "row", "%s%c%lld%c%lld%c%d", path, PART, (long long)measure.entries, PART, (long long)measure.bytes, PART,
          exists && measure.complete);
      continue;
    }
    put(&answer->fields, "entries", "%lld", (long long)measure.entries);
    put(&answer->fields, "bytes", "%lld", (long long)measure.bytes);
    put(&answer->fields, "complete", "%d", measure.complete);
  }
}
