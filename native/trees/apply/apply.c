/* The steps of a promotion's transaction, each a request of its own: stage, carry, verify, back, clean. */
#include "apply.h"
#include "../trees.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

void apply_slot(const struct apply_entry *entry, const struct apply *apply, char slot[SLOT_MAX]) {
  snprintf(slot, SLOT_MAX, "%zu", (size_t)(entry - apply->entries));
}

int apply_parent(const struct apply *apply, const char *path, const char **name) {
  const char *slash = strrchr(path, '/');
  *name = slash == NULL ? path : slash + 1;
  if (slash == NULL) return fcntl(apply->project, F_DUPFD_CLOEXEC, 0);
  char folder[PATH_MAX];
  memcpy(folder, path, (size_t)(slash - path));
  folder[slash - path] = '\0';
  return open_beneath(apply->project, folder, O_PATH | O_DIRECTORY);
}

uint64_t apply_inode(int folder, const char *name) {
  struct stat status;
  return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_ino : 0;
}

bool apply_empty(int folder, const char *name) {
  int fd = open_beneath(folder, name, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return false;
  struct names names = {0};
  bool empty = names_read(fd, &names) == 0 && names.count == 0;
  names_free(&names);
  close(fd);
  return empty;
}

int apply_move(int from, const char *name, int to, const char *target, unsigned flags) {
  return (int)syscall(SYS_renameat2, from, name, to, target, flags);
}

int64_t apply_nanoseconds(struct timespec time) { return (int64_t)time.tv_sec * NANOSECONDS + time.tv_nsec; }

void apply_conflict(struct apply *apply, const char *key, const char *what, const char *path) {
  struct output *fields = &apply->answer->fields;
  if (fields->length + strlen(what) + strlen(path) < APPLY_ROWS_MAX) put(fields, key, "%s%c%s", what, PART, path);
  else if (fields->length < APPLY_ROWS_MAX) put(fields, key, APPLY_MORE_ROWS, PART);
}

const char *apply_words(enum match match) {
  return match == MISSING ? "is gone" : match == FOLDER ? "is a folder now" : "changed since";
}

static const char *obstacle_of(int error) {
  switch (error) {
    case ENOENT: return "is gone, or its folder is";
    case ENOTDIR:
    case ELOOP: return "lies behind a link or below a file";
    case EXDEV:
    case EBUSY: return "lies on another file system";
    case EEXIST: return "is there already";
    default: return NULL;
  }
}

void apply_obstacle(struct apply *apply, const char *step, const char *path) {
  const char *what = obstacle_of(errno);
  if (what == NULL) refuse_errno(apply->answer, step, path);
  else apply_conflict(apply, "conflict", what, path);
}

/* Two places. Programs of the project do not look into the first; where the repository lies elsewhere or is closed, the second is beside the files. */
static const char *const PLACES[] = {".git/vivarium-", ".vivarium-"};
enum { PLACE_COUNT = sizeof PLACES / sizeof *PLACES };

static int open_staging(const struct apply *apply, int place, bool make) {
  char path[256];
  struct stat project, staging;
  snprintf(path, sizeof path, "%s%s", PLACES[place], apply->id);
  const char *name;
  int parent = apply_parent(apply, path, &name);
  if (parent < 0) return -1;
  int fd = make && mkdirat(parent, name, 0700) != 0 ? -1 : open_beneath(parent, name, O_RDONLY | O_DIRECTORY);
  if (fd >= 0 && make && fstat(fd, &staging) == 0 && fstat(apply->project, &project) == 0 && staging.st_dev != project.st_dev) {
    close(fd);
    fd = -1;
    unlinkat(parent, name, AT_REMOVEDIR);
    errno = EXDEV;
  }
  int error = errno;
  close(parent);
  errno = error;
  return fd;
}

static bool make_staging(struct apply *apply) {
  struct stat status;
  for (int place = 0; place < PLACE_COUNT && apply->staging < 0; place++) {
    apply->staging = open_staging(apply, place, true);
    if (apply->staging < 0 && (errno == EROFS || errno == ENOSPC || errno == EDQUOT || errno == EEXIST)) break;
  }
  if (apply->staging < 0 || fstat(apply->staging, &status) != 0) {
    refuse_errno(apply->answer, "stage", "no staging folder can be made in the project");
    return false;
  }
  apply->staging_inode = status.st_ino;
  return true;
}

/* The staging folder that the journal knows; without it nothing can be carried out or brought back. */
static bool find_staging(struct apply *apply) {
  for (int place = 0; place < PLACE_COUNT; place++) {
    struct stat status;
    apply->staging = open_staging(apply, place, false);
    if (apply->staging >= 0 && fstat(apply->staging, &status) == 0 && status.st_ino == apply->staging_inode) return true;
    if (apply->staging >= 0) close(apply->staging);
    apply->staging = -1;
  }
  return false;
}

static bool open_folder(const char *path, int *fd, const char *step, struct answer *answer) {
  *fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (*fd < 0) refuse_errno(answer, step, path);
  return *fd >= 0;
}

/* Fields of every step: name=, project=, state=; contents= where contents are looked at. */
static bool begin(const struct fields *request, struct answer *answer, struct apply *apply, bool contents) {
  const char *project = required(request, "project", answer), *state = required(request, "state", answer);
  const char *from = contents ? required(request, "contents", answer) : "";
  static struct apply_room room;
  struct stat status;
  *apply = (struct apply){.state = -1, .project = -1, .contents = -1, .staging = -1, .answer = answer, .id = required(request, "name", answer), .room = &room};
  if (answer->failed) return false;
  size_t length = strspn(apply->id, "abcdefghijklmnopqrstuvwxyz0123456789");
  if (length > 64 || apply->id[length] != '\0') {
    refuse(answer, "bad-request", EINVAL, "request", "name must be 1 to 64 of a-z and 0-9");
    return false;
  }
  if (!open_folder(state, &apply->state, "state", answer) || !open_folder(project, &apply->project, "project", answer)) return false;
  if (contents && !apply_open_contents(apply, from)) return false;
  /* A step of a server that was killed may still be ending. */
  if (flock(apply->state, LOCK_EX) != 0 || fstat(apply->project, &status) != 0) {
    refuse_errno(answer, "lock", state);
    return false;
  }
  apply->project_inode = status.st_ino;
  int64_t halt = 0;
  apply->halt = field_number(request, "halt", &halt) && halt > 0 ? (size_t)halt : 0;
  return true;
}

static bool same_project(struct apply *apply) {
  uint64_t now = apply->project_inode;
  if (!apply_read_journal(apply)) return false;
  if (now == apply->project_inode) return true;
  refuse(apply->answer, "not-found", ENOENT, "project", "the project's folder is another one than when the promotion began");
  return false;
}

/* As begin, for the steps after staging. */
static bool go_on(const struct fields *request, struct answer *answer, struct apply *apply) {
  if (!begin(request, answer, apply, true) || !same_project(apply)) return false;
  if (!find_staging(apply)) refuse(answer, "not-found", ENOENT, "staging", "the staging folder of the promotion is gone");
  return !answer->failed;
}

static void sync_project(struct apply *apply) {
  if (!apply->answer->failed && syncfs(apply->project) != 0) refuse_errno(apply->answer, "sync", "the project's file system");
}

void apply_stage(const struct fields *request, struct answer *answer) {
  struct apply apply;
  if (!begin(request, answer, &apply, true) || !apply_read_list(&apply) || !apply_read_twins(&apply) || !make_staging(&apply)) return;
  apply_stage_entries(&apply);
  if (answer->failed || answer->fields.length > 0) return;
  sync_project(&apply);
  /* Bringing back compares with contents: they must survive a power failure as the journal does. */
  if (!answer->failed && apply.contents >= 0 && syncfs(apply.contents) != 0) refuse_errno(answer, "sync", "the contents");
  if (!answer->failed && apply_write_journal(&apply)) put(&answer->fields, "entries", "%zu", apply.count);
}

void apply_carry(const struct fields *request, struct answer *answer) {
  struct apply apply;
  int64_t from = 0, count = 0;
  if (!field_number(request, "from", &from) || !field_number(request, "count", &count) || from < 0 || count < 0) {
    refuse(answer, "bad-request", EINVAL, "request", "from and count must be numbers");
    return;
  }
  if (!go_on(request, answer, &apply)) return;
  size_t first = (size_t)from < apply.count ? (size_t)from : apply.count;
  size_t left = apply.count - first;
  apply_carry_entries(&apply, first, first + ((size_t)count < left ? (size_t)count : left));
}

void apply_verify(const struct fields *request, struct answer *answer) {
  struct apply apply;
  if (!go_on(request, answer, &apply)) return;
  sync_project(&apply);
  if (!answer->failed) apply_verify_entries(&apply);
}

void apply_back(const struct fields *request, struct answer *answer) {
  struct apply apply;
  if (!begin(request, answer, &apply, true) || !same_project(&apply)) return;
  /* It is removed only after everything is back: gone, it says that nothing is left to do. */
  if (!find_staging(&apply)) return;
  apply_bring_back(&apply);
  sync_project(&apply);
}

/* A folder that was taken out was empty. What a program with an open descriptor put into it since goes back with it. */
static void return_filled_folders(struct apply *apply) {
  for (size_t index = 0; index < apply->count; index++) {
    const struct apply_entry *entry = &apply->entries[index];
    char slot[SLOT_MAX];
    const char *name;
    if (entry->kind != TAKE_FOLDER) continue;
    apply_slot(entry, apply, slot);
    if (unlinkat(apply->staging, slot, AT_REMOVEDIR) == 0 || errno == ENOENT) continue;
    int parent = apply_parent(apply, entry->path, &name);
    if (parent < 0) continue;
    apply_move(apply->staging, slot, parent, name, RENAME_NOREPLACE);
    close(parent);
  }
}

/* Into the server's folder, if that lies on the same file system: then nothing is left in the project, and the files are removed while
   no caller waits. */
static bool put_aside(struct apply *apply, int parent, const char *name) {
  return apply_move(parent, name, apply->state, "aside", RENAME_NOREPLACE) == 0;
}

/* journal=0 where there is none yet: then the name alone says which folder it is. */
void apply_clean(const struct fields *request, struct answer *answer) {
  struct apply apply;
  if (!begin(request, answer, &apply, false)) return;
  if (field_flag(request, "journal") && (!same_project(&apply) || !find_staging(&apply))) return;
  if (apply.staging >= 0) return_filled_folders(&apply);
  for (int place = 0; place < PLACE_COUNT; place++) {
    char path[256];
    const char *name;
    snprintf(path, sizeof path, "%s%s", PLACES[place], apply.id);
    int parent = apply_parent(&apply, path, &name);
    if (parent < 0) continue;
    if (field_flag(request, "aside") && put_aside(&apply, parent, name)) put(&answer->fields, "aside", "1");
    else if (remove_at(parent, name) != 0) refuse_errno(answer, "clean", path);
    close(parent);
  }
}
