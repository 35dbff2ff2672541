/* The requests `sync` and `compare`: what is compared, and what is answered. */
#include "sync.h"
#include "../trees.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

char *join_path(const char *folder, const char *name) {
  if (strcmp(name, ".") == 0) name = folder, folder = ".";
  bool top = strcmp(folder, ".") == 0;
  size_t length = top ? 0 : strlen(folder) + 1, rest = strlen(name) + 1;
  char *path = malloc(length + rest);
  if (path == NULL) abort();
  if (!top) memcpy(path, folder, length), path[length - 1] = '/';
  memcpy(path + length, name, rest);
  return path;
}

void visit_later(struct sync *sync, const char *folder, const char *name, bool all, bool empty) {
  if (sync->visit_count == sync->visit_room) {
    sync->visit_room = sync->visit_room == 0 ? 64 : sync->visit_room * 2;
    sync->visits = realloc(sync->visits, sync->visit_room * sizeof *sync->visits);
    if (sync->visits == NULL) abort();
  }
  sync->visits[sync->visit_count++] = (struct visit){.path = join_path(folder, name), .all = all, .empty = empty};
}

static void visit_all(struct sync *sync) {
  while (sync->visit_count > 0 && !sync->answer->failed) {
    struct visit visit = sync->visits[--sync->visit_count];
    visit_folder(sync, &visit);
    free(visit.path);
  }
}

void list_row(struct sync *sync, size_t *rows, const char *key, const char *value) {
  size_t most = rows == &sync->rows ? ROWS_MOST : LIST_MOST;
  if ((*rows)++ >= most || !put_row(&sync->answer->fields, key, value, ANSWER_MOST)) sync->cut = true;
}

void note_change(struct sync *sync, char kind, const char *path) {
  if (kind == 'A') sync->added++;
  else if (kind == 'M') sync->changed++;
  else sync->removed++;
  if (is_ignore_file(path)) sync->ignore_changed = true;
  if (sync->writes) {
    list_row(sync, &sync->touched_rows, "touched", path);
    return;
  }
  size_t length = strlen(path);
  char *row = malloc(length + 3);
  if (row == NULL) abort();
  row[0] = kind;
  row[1] = PART;
  memcpy(row + 2, path, length + 1);
  list_row(sync, &sync->rows, "row", row);
  free(row);
}

static int by_bytes(const void *left, const void *right) { return strcmp(*(char *const *)left, *(char *const *)right); }

/* The values of a repeated field as relative paths, sorted; a parent comes before what is below it. */
static char **read_paths(const struct fields *request, const char *key, size_t *count) {
  char **paths = calloc(field_count(request, key) + 1, sizeof *paths);
  if (paths == NULL) abort();
  *count = 0;
  for (const char *value = field(request, key); value != NULL; value = field_next(request, key, value)) {
    while (strncmp(value, "./", 2) == 0) value += 2;
    size_t length = strlen(value);
    while (length > 0 && value[length - 1] == '/') length--;
    char *path = length == 0 ? strdup(".") : strndup(value, length);
    if (path == NULL) abort();
    paths[(*count)++] = path;
  }
  qsort(paths, *count, sizeof *paths, by_bytes);
  return paths;
}

bool is_skipped(const struct sync *sync, const char *path) {
  return sync->skip_count > 0 && bsearch(&path, sync->skips, sync->skip_count, sizeof *sync->skips, by_bytes) != NULL;
}

/* What decides which files are captured: when it differs from last time, everything is compared. */
static uint64_t hash_options(const struct sync *sync) {
  uint64_t hash = mix(mix(4, sync->git), (uint64_t)sync->file_limit);
  for (size_t index = 0; index < sync->skip_count; index++)
    for (const char *at = sync->skips[index];; at++) {
      hash = mix(hash, (unsigned char)*at);
      if (*at == '\0') break;
    }
  return hash;
}

static void compare_folders(struct sync *sync, const struct fields *request) {
  size_t count;
  char **dirty = read_paths(request, "dirty", &count);
  if (sync->everything) count = 0;
  if (sync->everything || manifest_find(&sync->manifest, ".") == NULL) visit_later(sync, ".", ".", true, false);
  visit_all(sync);
  for (size_t index = 0; index < count && !sync->answer->failed; index++) {
    struct slot *slot = manifest_find(&sync->manifest, dirty[index]);
    /* What the manifest doesn't know lies in a folder that is new itself, and came with it. */
    if (slot == NULL || is_skipped(sync, dirty[index])) continue;
    visit_later(sync, dirty[index], ".", false, false);
    visit_all(sync);
  }
}

static bool prepare(struct sync *sync, const struct fields *request, const char *source, const char *manifest) {
  sync->source = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (sync->source < 0) {
    refuse_errno(sync->answer, "source", source);
    return false;
  }
  sync->git = field_flag(request, "git");
  if (field(request, "file_limit") != NULL && (!field_number(request, "file_limit", &sync->file_limit) || sync->file_limit < 0)) {
    refuse(sync->answer, "bad-request", EINVAL, "request", "file_limit must be a number of bytes");
    return false;
  }
  sync->skips = read_paths(request, "skip", &sync->skip_count);
  if (manifest_load(&sync->manifest, manifest) != 0) {
    if (errno == EBADMSG) refuse(sync->answer, "failed", EBADMSG, "interrupted", "the manifest %s is damaged", manifest);
    else refuse_errno(sync->answer, "manifest", manifest);
    return false;
  }
  sync->in_place = field_flag(request, "in_place");
  uint64_t options = hash_options(sync);
  bool other_options = options != sync->manifest.options;
  sync->manifest.options = options;
  sync->verify = sync->writes && !sync->layer && sync->manifest.found && sync->manifest.other_boot;
  sync->everything = field(request, "dirty") == NULL || other_options || sync->verify || !sync->manifest.found;
  return true;
}

static bool open_target(struct sync *sync, const char *target) {
  struct names names = {0};
  sync->target = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (sync->target < 0 || names_read(sync->target, &names) != 0) {
    refuse_errno(sync->answer, "target", target);
    return false;
  }
  if (names.count > 0 && (sync->layer || !sync->manifest.found))
    refuse(sync->answer, "exists", EEXIST, "target", "%s must be empty for a new layer or a first sync", target);
  names_free(&names);
  return !sync->answer->failed;
}

/* A twin that can't be opened, or would have to take everything, is none that a caller gets. */
static bool open_twin(struct sync *sync, const struct fields *request) {
  const char *twin = field(request, "twin");
  if (twin == NULL) return true;
  if (sync->layer || !field_number(request, "twin_bytes", &sync->twin_bytes) || !field_number(request, "twin_files", &sync->twin_files)) {
    refuse(sync->answer, "bad-request", EINVAL, "request", "a tip alone has a twin, and twin_bytes and twin_files say how much it takes");
    return false;
  }
  sync->twin = open(twin, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (sync->twin < 0 || sync->everything) twin_lose(sync);
  return true;
}

/* One sync at a time per manifest, also across a helper that was started anew. */
static bool lock(struct sync *sync, const char *manifest) {
  char *path;
  if (asprintf(&path, "%s.lock", manifest) < 0) abort();
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0 || flock(fd, LOCK_EX) != 0) refuse_errno(sync->answer, "lock", path);
  free(path);
  return !sync->answer->failed; /* held until the child ends */
}

static void save(struct sync *sync, const char *manifest, const char *manifest_to) {
  bool fresh = !sync->manifest.found || sync->manifest.other_boot || manifest_to != NULL;
  if (sync->manifest.changed) sync->manifest.generation++;
  /* A layer is never compared with its manifest again, so it must be on disk before the manifest says so. */
  if (sync->layer && sync->began && syncfs(sync->target) != 0) refuse_errno(sync->answer, "sync", manifest);
  if (sync->answer->failed || (!sync->manifest.changed && !fresh)) return;
  /* What belongs to a layer may be the manifest of other layers, too. */
  bool whole = fresh || sync->layer;
  int result = whole ? manifest_save(&sync->manifest, manifest_to != NULL ? manifest_to : manifest) : manifest_update(&sync->manifest, manifest);
  if (result != 0) refuse_errno(sync->answer, "manifest", manifest);
}

static void answer_sync(struct sync *sync) {
  struct output *fields = &sync->answer->fields;
  for (size_t index = 0; index < sync->manifest.room; index++) {
    const struct slot *slot = &sync->manifest.slots[index];
    if (slot->block == NULL || slot->dropped) continue;
    sync->files += slot->block->files;
    sync->total_bytes += slot->block->bytes;
    sync->special += slot->block->special;
  }
  put(fields, "files", "%llu", (unsigned long long)sync->files);
  put(fields, "added", "%llu", (unsigned long long)sync->added);
  put(fields, "changed", "%llu", (unsigned long long)(sync->writes ? sync->added + sync->changed : sync->changed));
  put(fields, "removed", "%llu", (unsigned long long)sync->removed);
  put(fields, "bytes", "%llu", (unsigned long long)sync->bytes);
  put(fields, "total_bytes", "%llu", (unsigned long long)sync->total_bytes);
  put(fields, "special", "%llu", (unsigned long long)sync->special);
  put(fields, "generation", "%llu", (unsigned long long)sync->manifest.generation);
  put(fields, "ignore", "%d", sync->ignore_changed);
  put(fields, "cut", "%d", sync->cut);
  /* Settings of git are written by the server, into the target. */
  if (sync->twin >= 0) put(fields, "twin", "%d", !sync->twin_lost && sync->config_rows == 0);
  put_owners(sync);
}

void sync_request(const struct fields *request, struct answer *answer) {
  const char *source = required(request, "source", answer), *target = required(request, "target", answer);
  const char *mode = required(request, "mode", answer), *manifest = required(request, "manifest", answer);
  const char *manifest_to = field(request, "manifest_to");
  if (answer->failed) return;
  struct sync sync = {.answer = answer, .writes = true, .layer = strcmp(mode, "layer") == 0, .source = -1, .target = -1, .twin = -1};
  if (!sync.layer && strcmp(mode, "tip") != 0) {
    refuse(answer, "bad-request", EINVAL, "request", "mode must be tip or layer");
    return;
  }
  const char *beside = field(request, "marker");
  char *marker;
  if (asprintf(&marker, "%s.dirty", manifest) < 0) abort();
  /* A new layer with a manifest of its own changes nothing that was there before. */
  sync.marker = sync.layer && manifest_to != NULL ? NULL : beside != NULL ? beside : marker;
  if (!lock(&sync, manifest)) return;
  if (access(marker, F_OK) == 0 || (beside != NULL && access(beside, F_OK) == 0)) {
    refuse(answer, "failed", 0, "interrupted", "the last sync with %s did not finish", manifest);
    return;
  }
  if (!prepare(&sync, request, source, manifest) || !open_target(&sync, target) || !open_twin(&sync, request)) return;
  compare_folders(&sync, request);
  if (!answer->failed) target_finish(&sync);
  if (!answer->failed) save(&sync, manifest, manifest_to);
  if (answer->failed) return;
  if (sync.began && sync.marker != NULL && unlink(sync.marker) != 0) refuse_errno(answer, "marker", sync.marker);
  answer_sync(&sync);
}

void compare_request(const struct fields *request, struct answer *answer) {
  const char *source = required(request, "source", answer), *manifest = required(request, "manifest", answer);
  if (answer->failed) return;
  struct sync sync = {.answer = answer, .source = -1, .target = -1, .twin = -1};
  if (!prepare(&sync, request, source, manifest)) return;
  compare_folders(&sync, request);
  answer_sync(&sync);
}
