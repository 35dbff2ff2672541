/* Lists in the state folder of a promotion: records ended by NUL, their parts separated by 0x1f, the path last since it may hold any byte. */
#include "apply.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIST_MAX (1ll << 30)
#define ID_MAX 64
#define FORMAT "vivarium journal 1"

static bool damaged(struct apply *apply, const char *name) {
  refuse(apply->answer, "bad-request", EINVAL, "list", "%s is damaged", name);
  return false;
}

char *apply_read_text(int folder, const char *name, size_t *length) {
  struct stat status;
  char *text = NULL;
  int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size < LIST_MAX) {
    *length = (size_t)status.st_size;
    text = malloc(*length + 1);
    if (text == NULL) abort();
    text[*length] = '\0';
    if (read_all(fd, text, *length) != 0) {
      free(text);
      text = NULL;
    }
  }
  int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return text;
}

static bool read_text(struct apply *apply, const char *name, size_t *length) {
  apply->text = apply_read_text(apply->state, name, length);
  if (apply->text == NULL) refuse_errno(apply->answer, "list", name);
  return apply->text != NULL && (*length == 0 || apply->text[*length - 1] == '\0' || damaged(apply, name));
}

static bool read_number(const char *text, int64_t *value) {
  char *end;
  errno = 0;
  *value = strtoll(text, &end, 10);
  return errno == 0 && *text != '\0' && *end == '\0';
}

/* `<mode>:<id>`, or `0:` for nothing. Only what a project's folder holds as a file is allowed. */
static bool read_side(char *text, struct apply_side *side) {
  char *colon = strchr(text, ':');
  if (colon == NULL) return false;
  *colon = '\0';
  side->mode = (unsigned)strtoul(text, NULL, 8);
  side->id = colon + 1;
  if (side->mode == 0) return *side->id == '\0';
  size_t length = strspn(side->id, "0123456789abcdef");
  return (side->mode == 0100644 || side->mode == 0100755 || side->mode == 0120000) && length >= 40 && length <= ID_MAX && side->id[length] == '\0';
}

static bool sides_fit(const struct apply_entry *entry) {
  bool had = entry->old.mode != 0, has = entry->new.mode != 0;
  switch (entry->kind) {
    case TAKE_FILE: return had && !has;
    case TAKE_FOLDER:
    case MAKE_FOLDER: return !had && !has;
    case CREATE: return !had && has;
    case CHANGE: return had && has;
    default: return false;
  }
}

/* <kind>|<old>|<new>|<mode>|<mtime>|<inode>|<size>|<mtime of the staged>|<path>; the numbers of what is staged are 0 in a list. */
static bool read_entry(char *record, struct apply_entry *entry) {
  char *parts[9];
  size_t count = 1;
  parts[0] = record;
  for (; count < 9; count++) {
    char *separator = strchr(parts[count - 1], PART);
    if (separator == NULL) return false;
    *separator = '\0';
    parts[count] = separator + 1;
  }
  int64_t inode;
  *entry = (struct apply_entry){.kind = parts[0][0], .path = parts[8]};
  bool numbers = read_number(parts[3], &entry->mode) && read_number(parts[4], &entry->mtime) && read_number(parts[5], &inode) &&
                 read_number(parts[6], &entry->staged_size) && read_number(parts[7], &entry->staged_mtime);
  entry->inode = numbers ? (uint64_t)inode : 0;
  return numbers && parts[0][1] == '\0' && read_side(parts[1], &entry->old) && read_side(parts[2], &entry->new) && sides_fit(entry) &&
         apply_path_allowed(entry->path);
}

static bool read_entries(struct apply *apply, const char *name, char *at, const char *end) {
  size_t room = 0;
  for (const char *scan = at; scan < end; scan += strlen(scan) + 1) room++;
  apply->entries = calloc(room + 1, sizeof *apply->entries);
  if (apply->entries == NULL) abort();
  while (at < end) {
    size_t length = strlen(at);
    if (!read_entry(at, &apply->entries[apply->count++])) return damaged(apply, name);
    at += length + 1;
  }
  return true;
}

bool apply_read_list(struct apply *apply) {
  size_t length;
  return read_text(apply, "list", &length) && read_entries(apply, "list", apply->text, apply->text + length);
}

bool apply_read_journal(struct apply *apply) {
  size_t length;
  if (!read_text(apply, "journal", &length)) return false;
  char *end = apply->text + length;
  char format[32];
  size_t count;
  if (length == 0 || sscanf(apply->text, "%31[^|]|%" SCNu64 "|%" SCNu64 "|%zu", format, &apply->project_inode, &apply->staging_inode, &count) != 4)
    return damaged(apply, "journal");
  if (strcmp(format, FORMAT) != 0) return damaged(apply, "journal");
  if (!read_entries(apply, "journal", apply->text + strlen(apply->text) + 1, end)) return false;
  return apply->count == count || damaged(apply, "journal");
}

static void write_entry(FILE *file, const struct apply_entry *entry) {
  fprintf(file, "%c%c%o:%s%c%o:%s%c%" PRId64 "%c%" PRId64 "%c%" PRIu64 "%c%" PRId64 "%c%" PRId64 "%c%s", entry->kind, PART, entry->old.mode,
          entry->old.id, PART, entry->new.mode, entry->new.id, PART, entry->mode, PART, entry->mtime, PART, entry->inode, PART,
          entry->staged_size, PART, entry->staged_mtime, PART, entry->path);
  fputc('\0', file);
}

bool apply_write_journal(struct apply *apply) {
  int fd = openat(apply->state, "journal.new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
  bool written = file != NULL;
  if (written) {
    fprintf(file, FORMAT "|%" PRIu64 "|%" PRIu64 "|%zu", apply->project_inode, apply->staging_inode, apply->count);
    fputc('\0', file);
    for (size_t index = 0; index < apply->count; index++) write_entry(file, &apply->entries[index]);
    written = fflush(file) == 0 && fsync(fd) == 0;
    written = fclose(file) == 0 && written;
  }
  if (!written) refuse_errno(apply->answer, "journal", "the journal can't be written");
  return written;
}
