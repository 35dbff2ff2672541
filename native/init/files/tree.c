/* Listing, moving, removing and making folders inside. Walks go from descriptor to descriptor and follow no link. */
#include "job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK)

static bool is_dots(const char *name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

static void send_entry(struct job *job, int folder, const char *name, const char *path, const struct stat *stat) {
  struct output output = {0};
  put_entry(&output, folder, name, path, stat);
  job_send(job, ENTRY, output.data, output.length);
  output_free(&output);
}

void file_stat(struct job *job) {
  struct stat stat;
  if (lstat(job->path, &stat) != 0) job_fail(job, errno, "stat", NULL, NULL);
  send_entry(job, AT_FDCWD, job->path, ".", &stat);
  job_send(job, END, NULL, 0);
}

struct listing {
  struct job *job;
  int64_t left;
  char path[1 << 16];
};

static void list_folder(struct listing *listing, int fd, size_t length, int64_t depth) {
  DIR *folder = fdopendir(fd);
  if (folder == NULL) {
    close(fd);
    return;
  }
  for (struct dirent *entry; listing->left > 0 && (entry = readdir(folder)) != NULL;) {
    size_t name_length = strlen(entry->d_name);
    struct stat stat;
    if (is_dots(entry->d_name) || length + name_length + 2 > sizeof listing->path) continue;
    if (fstatat(fd, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) != 0) continue; /* gone meanwhile */
    memcpy(listing->path + length, entry->d_name, name_length + 1);
    send_entry(listing->job, fd, entry->d_name, listing->path, &stat);
    listing->left--;
    int below = S_ISDIR(stat.st_mode) && depth > 1 ? openat(fd, entry->d_name, FOLDER | O_NOFOLLOW) : -1;
    if (below < 0) continue; /* not asked for, or not allowed: its own row stands */
    listing->path[length + name_length] = '/';
    list_folder(listing, below, length + name_length + 1, depth - 1);
  }
  closedir(folder);
}

void file_list(struct job *job) {
  static struct listing listing;
  int64_t depth = 1, limit = LIST_DEFAULT;
  field_number(job->request, "depth", &depth);
  field_number(job->request, "limit", &limit);
  if (depth < 1 || limit < 1) job_fail(job, EINVAL, "request", NULL, NULL);
  int fd = open(job->path, FOLDER);
  if (fd < 0) job_fail(job, errno, "open", NULL, NULL);
  listing.job = job;
  listing.left = limit < LIST_MOST ? limit : LIST_MOST;
  list_folder(&listing, fd, 0, depth < DEPTH_MOST ? depth : DEPTH_MOST);
  job_send(job, END, NULL, 0);
}

void file_move(struct job *job) {
  const char *to = field(job->request, "to");
  if (to == NULL) job_fail(job, EINVAL, "request", NULL, "to= is missing");
  unsigned flags = field_flag(job->request, "replace") ? 0 : 1; /* RENAME_NOREPLACE */
  if (syscall(SYS_renameat2, AT_FDCWD, job->path, AT_FDCWD, to, flags) != 0) {
    job_fail(job, errno, "move", NULL, errno == EXDEV ? "the two paths lie on different file systems" : NULL);
  }
  job_reply(job);
}

static unsigned cuts;
static int remove_folder(int top, int parent, const char *name, int depth);

/* A tree deeper than the descriptors at hand is cut: the deep part is moved up to the top, for the next pass. */
static int cut(int top, int parent, const char *name) {
  char aside[40];
  snprintf(aside, sizeof aside, ".viv-remove-%d-%u", (int)getpid(), cuts++);
  return renameat(parent, name, top, aside);
}

static int remove_entry(int top, int parent, const char *name, int depth) {
  if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return 0;
  if (errno != EISDIR && errno != EPERM) return -1;
  return remove_folder(top, parent, name, depth);
}

static int remove_folder(int top, int parent, const char *name, int depth) {
  if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
  if (errno != ENOTEMPTY && errno != EEXIST) return -1;
  if (depth >= DEPTH_MOST) return cut(top, parent, name);
  int fd = openat(parent, name, FOLDER | O_NOFOLLOW);
  if (fd < 0) return -1;
  DIR *folder = fdopendir(fd);
  if (folder == NULL) {
    close(fd);
    return -1;
  }
  int result = 0, error = 0;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    if (is_dots(entry->d_name) || remove_entry(top < 0 ? fd : top, fd, entry->d_name, depth + 1) == 0) continue;
    result = -1;
    error = errno; /* goes on: what can be removed is */
  }
  closedir(folder);
  errno = error;
  return result != 0 ? -1 : unlinkat(parent, name, AT_REMOVEDIR);
}

int remove_tree(int parent, const char *name) {
  int result;
  unsigned before;
  do {
    before = cuts;
    result = unlinkat(parent, name, 0);
    if (result != 0 && (errno == EISDIR || errno == EPERM)) result = remove_folder(-1, parent, name, 0);
  } while (result != 0 && errno == ENOTEMPTY && cuts != before);
  return result;
}

void file_remove(struct job *job) {
  struct stat stat;
  if (lstat(job->path, &stat) != 0) job_fail(job, errno, "remove", NULL, NULL);
  bool folder = S_ISDIR(stat.st_mode), recursive = field_flag(job->request, "recursive");
  int result = folder && recursive ? remove_tree(AT_FDCWD, job->path) : unlinkat(AT_FDCWD, job->path, folder ? AT_REMOVEDIR : 0);
  if (result != 0) job_fail(job, errno, "remove", NULL, NULL);
  job_reply(job);
}

bool make_parents(const char *path) {
  char above[4096];
  strcpy(above, path);
  for (char *at = above + 1; (at = strchr(at, '/')) != NULL; at++) {
    *at = '\0';
    if (mkdir(above, 0777) != 0 && errno != EEXIST && access(above, F_OK) != 0) return false;
    *at = '/';
  }
  return true;
}

void file_mkdir(struct job *job) {
  bool parents = field_flag(job->request, "parents");
  const char *given = field(job->request, "mode");
  struct stat stat;
  if (parents && !make_parents(job->path)) job_fail(job, errno, "mkdir", NULL, NULL);
  if (mkdir(job->path, 0777) == 0) {
    if (given != NULL && chmod(job->path, (mode_t)strtoul(given, NULL, 8) & 07777) != 0) job_fail(job, errno, "mkdir", NULL, NULL);
  } else if (errno != EEXIST || !parents || lstat(job->path, &stat) != 0 || !S_ISDIR(stat.st_mode)) {
    job_fail(job, errno == 0 ? EEXIST : errno, "mkdir", NULL, NULL);
  }
  job_reply(job);
}
