/* Contents of a promotion: all in one file, found by a list of where each lies. */
#include "apply.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int by_id(const void *one, const void *other) {
  return strcmp(((const struct apply_place *)one)->id, ((const struct apply_place *)other)->id);
}

/* A line that was cut off is of a content that no list names yet. */
static bool read_place(char *line, int64_t end, struct apply_place *place) {
  char *space = strchr(line, ' ');
  if (space == NULL || sscanf(space, " %" SCNd64 " %" SCNd64, &place->offset, &place->size) != 2) return false;
  *space = '\0';
  place->id = line;
  return place->offset >= 0 && place->size >= 0 && place->size <= end && place->offset <= end - place->size;
}

static void read_places(struct apply *apply, char *text, size_t length, int64_t end) {
  size_t room = 1;
  for (size_t at = 0; at < length; at++) room += text[at] == '\n';
  apply->places = calloc(room, sizeof *apply->places);
  if (apply->places == NULL) abort();
  char *rest = NULL;
  for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
    apply->place_count += read_place(line, end, &apply->places[apply->place_count]);
  qsort(apply->places, apply->place_count, sizeof *apply->places, by_id);
}

bool apply_open_contents(struct apply *apply, const char *folder) {
  struct stat status;
  size_t length;
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  char *text = fd < 0 ? NULL : apply_read_text(fd, "index", &length);
  bool none = fd >= 0 && text == NULL && errno == ENOENT;
  if (text != NULL) apply->contents = openat(fd, "pack", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  bool opened = apply->contents >= 0 && fstat(apply->contents, &status) == 0;
  if (!none && !opened) refuse_errno(apply->answer, "contents", folder);
  if (opened) read_places(apply, text, length, status.st_size);
  if (fd >= 0) close(fd);
  return none || opened;
}

const struct apply_place *apply_place_of(const struct apply *apply, const char *id) {
  struct apply_place wanted = {.id = id};
  const struct apply_place *found = apply->place_count == 0 ? NULL : bsearch(&wanted, apply->places, apply->place_count, sizeof wanted, by_id);
  if (found == NULL) errno = ENODATA;
  return found;
}

int apply_read_place(const struct apply *apply, const struct apply_place *place, int64_t from, char *buffer, size_t length) {
  for (size_t done = 0; done < length;) {
    ssize_t count = pread(apply->contents, buffer + done, length - done, place->offset + from + (int64_t)done);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) errno = EIO;
    if (count <= 0) return -1;
    done += (size_t)count;
  }
  return 0;
}
