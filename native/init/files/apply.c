/* Many changes to one tree in one stream. Every path lies below the folder asked for, and no link on the way is followed. */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct applying {
  struct job *job;
  int root;
  char path[4096];          /* of the step under way */
  int folder;               /* that holds it, -1: none is under way */
  const char *name;         /* in `path` */
  int file;                 /* what its content goes to, -1: it has none */
  bool executable;
  int64_t since;            /* what was changed after this time, in milliseconds, is left alone; 0: nothing is */
  struct output late;       /* what was left alone */
};

static void fail(struct applying *applying, int error, const char *step) __attribute__((noreturn));
static void fail(struct applying *applying, int error, const char *step) {
  char message[4096 + 64];
  snprintf(message, sizeof message, "%s: %s", applying->path, strerror(error));
  remove_aside();
  job_fail(applying->job, error, step, NULL, message);
}

static bool is_path(const char *path) {
  for (;; path++) {
    size_t length = strcspn(path, "/");
    if (length == 0 || (length <= 2 && strspn(path, ".") >= length)) return false;
    path += length;
    if (*path == '\0') return true;
  }
}

/* What root makes new belongs to whom its folder belongs; what others make is theirs. */
static void give_away(int folder, const char *name) {
  struct stat above;
  if (geteuid() == 0 && fstat(folder, &above) == 0 && fchownat(folder, name, above.st_uid, above.st_gid, AT_SYMLINK_NOFOLLOW) != 0) return;
}

/* From folder to folder. -1 with ENOENT when one is missing and none is to be made. */
static int open_folder(struct applying *applying, char *path, bool make) {
  int at = fcntl(applying->root, F_DUPFD_CLOEXEC, 4);
  for (char *slash; at >= 0 && (slash = strchr(path, '/')) != NULL; path = slash + 1) {
    *slash = '\0';
    bool made = make && mkdirat(at, path, 0777) == 0;
    if (make && !made && errno != EEXIST) fail(applying, errno, "parents");
    if (made) give_away(at, path);
    int next = openat(at, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int error = errno;
    close(at);
    errno = error;
    *slash = '/';
    at = next;
  }
  return at;
}

/* False with errno: there is no such place. */
static bool find_place(struct applying *applying, const char *path, bool make) {
  if (path == NULL || strlen(path) >= sizeof applying->path || !is_path(path)) job_fail(applying->job, EINVAL, "path", NULL, NULL);
  strcpy(applying->path, path);
  char *slash = strrchr(applying->path, '/');
  applying->name = slash == NULL ? applying->path : slash + 1;
  applying->folder = open_folder(applying, applying->path, make);
  if (applying->folder >= 0) return true;
  if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP) fail(applying, errno, "path");
  return false;
}

static void leave(struct applying *applying) {
  if (applying->folder >= 0) close(applying->folder);
  applying->folder = -1;
}

/* Whether something stands there that a program changed meanwhile. A folder counts as changed if there is something in it. */
static bool is_late(struct applying *applying) {
  struct stat stat;
  if (applying->since == 0 || fstatat(applying->folder, applying->name, &stat, AT_SYMLINK_NOFOLLOW) != 0) return false;
  int64_t changed = (int64_t)stat.st_ctim.tv_sec * 1000 + stat.st_ctim.tv_nsec / 1000000;
  bool late = S_ISDIR(stat.st_mode) ? unlinkat(applying->folder, applying->name, AT_REMOVEDIR) != 0 : changed >= applying->since;
  if (late && applying->late.length < FRAME_MAX / 2) put(&applying->late, "late", "%s", applying->path);
  return late;
}

/* Of the mode only the executable bit is carried over. Every user who may read an executable file may run it. */
static mode_t mode_for(const struct stat *before, bool executable) {
  mode_t mode = before != NULL && S_ISREG(before->st_mode) ? before->st_mode & 0777 : 0644;
  return executable ? mode | (mode & 0444) >> 2 : mode & ~(mode_t)0111;
}

static void finish_file(struct applying *applying) {
  if (applying->file < 0) return;
  if (is_late(applying)) {
    remove_aside();
    close(applying->file);
    applying->file = -1;
    return leave(applying);
  }
  struct stat stat;
  bool existed = fstatat(applying->folder, applying->name, &stat, AT_SYMLINK_NOFOLLOW) == 0;
  if (existed && S_ISDIR(stat.st_mode) && remove_tree(applying->folder, applying->name) != 0) fail(applying, errno, "replace");
  bool regular = existed && S_ISREG(stat.st_mode);
  place_aside(applying->job, applying->file, applying->name, regular ? &stat : NULL, mode_for(regular ? &stat : NULL, applying->executable));
  if (!regular) give_away(applying->folder, applying->name);
  close(applying->file);
  applying->file = -1;
  leave(applying);
}

static void begin_file(struct applying *applying, const struct fields *step) {
  if (!find_place(applying, field(step, "path"), true)) fail(applying, errno, "path");
  applying->executable = field_flag(step, "executable");
  applying->file = open_aside(applying->job, applying->folder);
}

static void make_link(struct applying *applying, const struct fields *step) {
  const char *target = field(step, "target");
  if (target == NULL) job_fail(applying->job, EINVAL, "target", NULL, NULL);
  if (!find_place(applying, field(step, "path"), true)) fail(applying, errno, "path");
  if (is_late(applying)) return leave(applying);
  if (remove_tree(applying->folder, applying->name) != 0 && errno != ENOENT) fail(applying, errno, "replace");
  if (symlinkat(target, applying->folder, applying->name) != 0) fail(applying, errno, "link");
  give_away(applying->folder, applying->name);
  leave(applying);
}

/* It is not what was to go. */
static bool is_folder(const struct applying *applying) {
  struct stat stat;
  return fstatat(applying->folder, applying->name, &stat, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(stat.st_mode);
}

static void remove_one(struct applying *applying, const struct fields *step) {
  if (find_place(applying, field(step, "path"), false) && !is_folder(applying) && !is_late(applying)) {
    if (unlinkat(applying->folder, applying->name, 0) != 0 && errno != ENOENT) fail(applying, errno, "remove");
  }
  leave(applying);
}

/* What stands there, or where a folder above should be, stays. */
static void make_folder(struct applying *applying, const struct fields *step) {
  if (!find_place(applying, field(step, "path"), true)) return;
  if (mkdirat(applying->folder, applying->name, 0777) == 0) give_away(applying->folder, applying->name);
  else if (errno != EEXIST) fail(applying, errno, "folder");
  leave(applying);
}

/* A folder goes if nothing is left in it, and if it can: it may be a mount. */
static void prune(struct applying *applying, const struct fields *step) {
  if (find_place(applying, field(step, "path"), false)) unlinkat(applying->folder, applying->name, AT_REMOVEDIR);
  leave(applying);
}

static void begin_step(struct applying *applying, const struct fields *step) {
  const char *what = fields_valid(step) ? field(step, "do") : NULL;
  if (what == NULL) job_fail(applying->job, EINVAL, "request", NULL, NULL);
  alarm(FILE_SECONDS_MAX); /* for each of them */
  if (strcmp(what, "file") == 0) begin_file(applying, step);
  else if (strcmp(what, "link") == 0) make_link(applying, step);
  else if (strcmp(what, "remove") == 0) remove_one(applying, step);
  else if (strcmp(what, "folder") == 0) make_folder(applying, step);
  else if (strcmp(what, "prune") == 0) prune(applying, step);
  else job_fail(applying->job, EINVAL, "request", NULL, "do= is not known");
}

static void finish(struct applying *applying) {
  struct output output = {0};
  put(&output, "ok", "1");
  if (applying->late.length > 0) put_bytes(&output, applying->late.data, applying->late.length);
  if (output.length <= CHUNK_MAX) job_send(applying->job, REPLY, output.data, output.length);
  else {
    flush(applying->job);
    send_output(applying->job->fd, REPLY, &output);
  }
}

void file_apply(struct job *job) {
  static char chunk[CHUNK_MAX];
  static struct applying applying = {.folder = -1, .file = -1};
  applying.job = job;
  applying.root = open(job->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (applying.root < 0) job_fail(job, errno, "open", NULL, NULL);
  field_number(job->request, "since_ms", &applying.since);
  job_reply(job);
  for (;;) {
    uint8_t kind;
    size_t length;
    if (!job_receive(job, chunk, &kind, &length)) break;
    if (kind == DATA && applying.file >= 0) {
      if (write_all(applying.file, chunk, length) != 0) fail(&applying, errno, "write");
      continue;
    }
    if (kind != ENTRY && kind != END) break;
    finish_file(&applying);
    if (kind == END) return finish(&applying);
    begin_step(&applying, &(struct fields){chunk, length});
  }
  remove_aside();
  _exit(1);
}
