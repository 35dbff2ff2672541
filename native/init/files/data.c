/* Reading and writing files inside. */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static void refuse_kind(struct job *job, mode_t mode) {
  if (S_ISDIR(mode)) job_fail(job, EISDIR, "open", NULL, NULL);
  if (!S_ISREG(mode)) job_fail(job, EINVAL, "open", "bad-request", "not a regular file");
}

void file_read(struct job *job) {
  static char chunk[CHUNK_MAX];
  int64_t offset = 0, length = INT64_MAX;
  field_number(job->request, "offset", &offset);
  field_number(job->request, "length", &length);
  if (offset < 0 || length < 0) job_fail(job, EINVAL, "request", NULL, NULL);
  /* Without O_NONBLOCK the open of a fifo would wait for its writer. */
  int fd = open(job->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  struct stat stat;
  if (fd < 0 || fstat(fd, &stat) != 0) job_fail(job, errno, "open", errno == ENXIO ? "bad-request" : NULL, NULL);
  refuse_kind(job, stat.st_mode);
  struct output output = {0};
  put(&output, "ok", "1");
  put_stat(&output, ".", &stat);
  if (stat.st_size > 0 && is_handed(job, fd)) {
    put(&output, "handed", "1");
    job_hand(job, fd, &output);
    return job_send(job, END, NULL, 0);
  }
  job_send(job, REPLY, output.data, output.length);
  /* What grows while it is read ends where it ended at first; files of /proc have no size and end by themselves. */
  if (stat.st_size > 0 && length > stat.st_size - offset) length = stat.st_size > offset ? stat.st_size - offset : 0;
  while (length > 0) {
    ssize_t count = pread(fd, chunk, length < (int64_t)sizeof chunk ? (size_t)length : sizeof chunk, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) job_fail(job, errno, "read", NULL, NULL);
    if (count == 0) break;
    job_send(job, DATA, chunk, (size_t)count);
    offset += count;
    length -= count;
  }
  job_send(job, END, NULL, 0);
}

struct target {
  char path[PATH_MAX];      /* of the file, the last link resolved */
  int folder;
  const char *name;
  bool existed;
  struct stat stat;
};

/* Replacing a link by a file would surprise: the file it leads to is replaced, if there is one. */
static void find_target(struct job *job, struct target *target) {
  struct stat link;
  char resolved[PATH_MAX];
  bool leads = lstat(job->path, &link) == 0 && S_ISLNK(link.st_mode) && realpath(job->path, resolved) != NULL;
  strcpy(target->path, leads ? resolved : job->path);
  char *slash = strrchr(target->path, '/');
  target->name = slash + 1;
  if (*target->name == '\0' || strcmp(target->name, ".") == 0 || strcmp(target->name, "..") == 0) job_fail(job, EISDIR, "open", NULL, NULL);
  *slash = '\0';
  target->folder = open(slash == target->path ? "/" : target->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (target->folder < 0) job_fail(job, errno, "open", NULL, NULL);
  target->existed = fstatat(target->folder, target->name, &target->stat, AT_SYMLINK_NOFOLLOW) == 0;
  if (target->existed && !S_ISLNK(target->stat.st_mode)) refuse_kind(job, target->stat.st_mode);
}

static char aside[32];
static int aside_folder = -1;

void remove_aside(void) {
  if (aside_folder >= 0) unlinkat(aside_folder, aside, 0);
  aside_folder = -1;
}

/* The clock, or the end of the sandbox. */
static void interrupted(int number) {
  (void)number;
  remove_aside();
  _exit(1);
}

int open_aside(struct job *job, int folder) {
  uint64_t random = 0;
  for (int attempt = 0; attempt < 8; attempt++) {
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) random += (uint64_t)getpid();
    snprintf(aside, sizeof aside, ".viv-%016llx", (unsigned long long)random);
    int fd = openat(folder, aside, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) job_fail(job, errno, "open", NULL, NULL);
    aside_folder = folder;
    signal(SIGALRM, interrupted);
    signal(SIGTERM, interrupted);
    return fd;
  }
  job_fail(job, EEXIST, "write", NULL, NULL);
}

static void give_up(struct job *job, const char *step) {
  int error = errno;
  remove_aside();
  job_fail(job, error, step, NULL, NULL);
}

/* Where the file was handed over, END alone comes: its bytes are there. */
static int64_t receive_content(struct job *job, int fd) {
  static char chunk[CHUNK_MAX];
  for (;;) {
    uint8_t kind;
    size_t length;
    if (!job_receive(job, chunk, &kind, &length) || (kind != DATA && kind != END)) {
      remove_aside();
      _exit(1);
    }
    struct stat stat;
    if (kind == END) return fstat(fd, &stat) == 0 ? stat.st_size : 0;
    if (write_all(fd, chunk, length) != 0) give_up(job, "write");
  }
}

static int64_t append_content(struct job *job, const struct target *target, int from, mode_t mode) {
  static char chunk[CHUNK_MAX];
  struct stat stat;
  int to = openat(target->folder, target->name, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC, mode);
  if (to < 0 || fstat(to, &stat) != 0) job_fail(job, errno, "open", NULL, NULL);
  refuse_kind(job, stat.st_mode);
  lseek(from, 0, SEEK_SET);
  for (ssize_t count; (count = read(from, chunk, sizeof chunk)) > 0;) {
    if (write_all(to, chunk, (size_t)count) == 0) continue;
    int error = errno;
    if (ftruncate(to, stat.st_size) != 0) error = errno; /* all or nothing */
    job_fail(job, error, "write", NULL, NULL);
  }
  return fstat(to, &stat) == 0 ? stat.st_size : 0;
}

void place_aside(struct job *job, int fd, const char *name, const struct stat *before, mode_t mode) {
  /* Root may write another's file: the owner stays. Where that is not allowed, the writer is the owner, as everywhere. */
  if (before != NULL && fchown(fd, before->st_uid, before->st_gid) != 0 && errno != EPERM) give_up(job, "write");
  if (fchmod(fd, mode) != 0) give_up(job, "write");
  if (renameat(aside_folder, aside, aside_folder, name) != 0) give_up(job, "rename");
  aside_folder = -1;
}

void file_write(struct job *job) {
  struct target target;
  bool append = field_flag(job->request, "append");
  if (field_flag(job->request, "parents") && !make_parents(job->path)) job_fail(job, errno, "parents", NULL, NULL);
  find_target(job, &target);
  bool regular = target.existed && S_ISREG(target.stat.st_mode);
  mode_t mode = regular ? target.stat.st_mode & 07777 : 0644;
  const char *given = field(job->request, "mode");
  if (given != NULL) mode = (mode_t)strtoul(given, NULL, 8) & 07777;
  int fd = open_aside(job, target.folder);
  if (append) remove_aside();
  if (!append && is_handed(job, fd)) job_hand(job, fd, &(struct output){.data = "ok=1\0handed=1", .length = sizeof "ok=1\0handed=1"});
  else job_reply(job);
  int64_t size = receive_content(job, fd);
  if (append) size = append_content(job, &target, fd, mode);
  else place_aside(job, fd, target.name, target.existed ? &target.stat : NULL, mode);
  struct output output = {0};
  put(&output, "ok", "1");
  put(&output, "size", "%lld", (long long)size);
  job_send(job, REPLY, output.data, output.length);
}
