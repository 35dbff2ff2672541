/* New contents as files of the project's own file system, with everything but their place as it will be. */
#include "apply.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Whom a new file belongs to, and which bits of its mode the project's own folder allows. */
struct birth {
  uid_t uid;
  gid_t gid;
  mode_t allowed;
  bool setgid; /* its folder hands its group on */
};

static struct birth birth_in(const struct apply *apply, const char *path) {
  struct stat project, folder;
  fstat(apply->project, &project);
  struct birth birth = {.uid = project.st_uid, .gid = project.st_gid, .allowed = (project.st_mode & 0775) | 0700};
  char parent[PATH_MAX];
  snprintf(parent, sizeof parent, "%s", path);
  int fd = -1;
  for (char *slash = strrchr(parent, '/'); slash != NULL && fd < 0; slash = strrchr(parent, '/')) {
    *slash = '\0';
    fd = open_beneath(apply->project, parent, O_PATH | O_DIRECTORY);
  }
  if (fd < 0) folder = project;
  else if (fstat(fd, &folder) != 0) folder = project;
  if (fd >= 0) close(fd);
  if (folder.st_mode & S_ISGID) {
    birth.gid = folder.st_gid;
    birth.setgid = true;
  }
  return birth;
}

/* Executable or not follows the change; where it is to be, whoever may read may execute. */
static mode_t with_execution(mode_t mode, bool executable) {
  mode &= 0777;
  return executable ? mode | 0100 | ((mode & 0444) >> 2) : mode & ~0111u;
}

static bool executes(mode_t mode) { return (mode & 0100) != 0; }

/* Attributes that speak of the old bytes, or give rights, or are another layer's, stay behind. */
static bool attribute_stays(const char *name) {
  static const char *const behind[] = {"security.capability", "security.ima", "security.evm"};
  for (size_t index = 0; index < sizeof behind / sizeof *behind; index++)
    if (strcmp(name, behind[index]) == 0) return true;
  return strncmp(name, "trusted.", 8) == 0;
}

static int copy_attributes(int source, int target) {
  static char names[XATTR_LIST_MAX], value[XATTR_SIZE_MAX];
  ssize_t length = flistxattr(source, names, sizeof names);
  for (ssize_t at = 0; at < length; at += (ssize_t)strlen(names + at) + 1) {
    if (attribute_stays(names + at)) continue;
    ssize_t size = fgetxattr(source, names + at, value, sizeof value);
    if (size < 0 || fsetxattr(target, names + at, value, (size_t)size, 0) == 0) continue;
    /* A label that only the system may give is given by the system. */
    if (strncmp(names + at, "security.", 9) != 0) return -1;
  }
  return 0;
}

/* Root gives everything to whom it belongs. Others own what they make; a group they are not in stays as it is. */
static int give(int fd, uid_t uid, gid_t gid, bool exact) {
  if (fchownat(fd, "", uid, gid, AT_EMPTY_PATH) == 0) return 0;
  if (errno != EPERM || exact) return -1;
  if (fchownat(fd, "", (uid_t)-1, gid, AT_EMPTY_PATH) == 0 || errno == EPERM) return 0;
  return -1;
}

static int set_times(int folder, const char *slot, const struct apply_entry *entry) {
  if (entry->mode < 0) return 0;
  int64_t part = entry->mtime % NANOSECONDS;
  if (part < 0) part += NANOSECONDS; /* before 1970 */
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = (entry->mtime - part) / NANOSECONDS, .tv_nsec = part}};
  return utimensat(folder, slot, times, AT_SYMLINK_NOFOLLOW);
}

/* What is at the path now, if it is a file: its owner, mode and attributes are kept. -1: nothing to keep. */
static int open_present(const struct apply *apply, const struct apply_entry *entry, struct stat *status) {
  if (entry->kind != CHANGE) return -1;
  int fd = open_beneath(apply->project, entry->path, entry->old.mode == 0120000 ? O_PATH | O_NOFOLLOW : O_RDONLY | O_NONBLOCK);
  if (fd >= 0 && fstat(fd, status) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

static int dress(const struct apply *apply, const struct apply_entry *entry, int fd) {
  struct stat now;
  int present = open_present(apply, entry, &now);
  bool executable = entry->new.mode == 0100755;
  struct birth birth = birth_in(apply, entry->path);
  mode_t mode = 0;
  int result;
  if (present >= 0) result = give(fd, now.st_uid, now.st_gid, true);
  else result = give(fd, birth.uid, birth.gid, geteuid() == 0);
  if (result == 0 && present >= 0 && S_ISREG(now.st_mode)) {
    result = copy_attributes(present, fd);
    mode = executes(now.st_mode) == executable ? now.st_mode & 0777 : with_execution(now.st_mode, executable);
  } else mode = (executable ? 0777 : 0666) & birth.allowed;
  if (entry->mode >= 0 && executes((mode_t)entry->mode) == executable) mode = (mode_t)entry->mode & 0777;
  if (result == 0) result = fchmod(fd, mode);
  int error = errno;
  if (present >= 0) close(present);
  errno = error;
  return result;
}

static int stage_link(const struct apply *apply, const struct apply_entry *entry, const char *slot, int content) {
  char target[PATH_MAX];
  struct stat status, now;
  if (fstat(content, &status) != 0) return -1;
  bool fits = status.st_size > 0 && status.st_size < (off_t)sizeof target;
  errno = EINVAL;
  if (!fits || read_all(content, target, (size_t)status.st_size) != 0 || memchr(target, '\0', (size_t)status.st_size) != NULL) return -1;
  target[status.st_size] = '\0';
  if (symlinkat(target, apply->staging, slot) != 0) return -1;
  int present = open_present(apply, entry, &now), fd = openat(apply->staging, slot, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  struct birth birth = birth_in(apply, entry->path);
  int result = fd < 0 ? -1 : present >= 0 ? give(fd, now.st_uid, now.st_gid, true) : give(fd, birth.uid, birth.gid, geteuid() == 0);
  int error = errno;
  if (present >= 0) close(present);
  if (fd >= 0) close(fd);
  errno = error;
  return result;
}

static int stage_file(const struct apply *apply, const struct apply_entry *entry, const char *slot, int content) {
  int fd = openat(apply->staging, slot, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  int result = apply_copy(content, fd);
  if (result == 0) result = dress(apply, entry, fd);
  int error = errno;
  close(fd);
  errno = error;
  return result;
}

static int stage_content(const struct apply *apply, const struct apply_entry *entry, const char *slot) {
  int content = openat(apply->contents, entry->new.id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (content < 0) return -1;
  int result = (entry->new.mode == 0120000 ? stage_link : stage_file)(apply, entry, slot, content);
  int error = errno;
  close(content);
  errno = error;
  return result;
}

static int stage_folder(const struct apply *apply, const struct apply_entry *entry, const char *slot) {
  struct birth birth = birth_in(apply, entry->path);
  if (mkdirat(apply->staging, slot, 0700) != 0) return -1;
  int fd = open_beneath(apply->staging, slot, O_RDONLY | O_DIRECTORY);
  int result = fd < 0 ? -1 : give(fd, birth.uid, birth.gid, geteuid() == 0);
  if (result == 0) result = fchmod(fd, birth.allowed | (birth.setgid ? S_ISGID : 0));
  int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return result;
}

static bool is_folder(const struct apply *apply, const char *path) {
  int fd = open_beneath(apply->project, path, O_PATH | O_DIRECTORY);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

static void stage_entry(struct apply *apply, struct apply_entry *entry) {
  char slot[SLOT_MAX];
  struct stat status;
  apply_slot(entry, apply, slot);
  entry->inode = 0;
  if (entry->kind == TAKE_FILE || entry->kind == TAKE_FOLDER || (entry->kind == MAKE_FOLDER && is_folder(apply, entry->path))) return;
  int result = entry->kind == MAKE_FOLDER ? stage_folder(apply, entry, slot) : stage_content(apply, entry, slot);
  if (result == 0) result = set_times(apply->staging, slot, entry);
  if (result == 0) result = fstatat(apply->staging, slot, &status, AT_SYMLINK_NOFOLLOW);
  if (result != 0) {
    refuse_errno(apply->answer, "stage", entry->path);
    return;
  }
  entry->inode = status.st_ino;
  entry->staged_size = status.st_size;
  entry->staged_mtime = apply_nanoseconds(status.st_mtim);
}

/* Whether somebody else's file can be exchanged without becoming ours. */
static bool belongs(const struct apply_entry *entry, int parent, const char *name) {
  struct stat status;
  return geteuid() == 0 || entry->kind != CHANGE || fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || status.st_uid == geteuid();
}

/* Tells all late edits at once before anything is done; carrying out looks again. */
static void expect(struct apply *apply, const struct apply_entry *entry) {
  const char *name;
  struct stat status;
  if (entry->kind == TAKE_FOLDER || entry->kind == MAKE_FOLDER) return;
  int parent = apply_parent(apply, entry->path, &name);
  if (entry->kind == CREATE) {
    /* A folder in the way, or a file where its folder will be, may be one that goes first. */
    bool taken = parent >= 0 && fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(status.st_mode);
    if (taken) apply_conflict(apply, "conflict", "is there already", entry->path);
    else if (parent < 0 && errno == EXDEV) apply_obstacle(apply, "stage", entry->path);
  } else {
    enum match match = parent < 0 ? FAILED : apply_compare(apply, parent, name, &entry->old);
    if (match == FAILED) apply_obstacle(apply, "stage", entry->path);
    else if (match != SAME) apply_conflict(apply, "conflict", apply_words(match), entry->path);
    else if (!belongs(entry, parent, name)) apply_conflict(apply, "conflict", "belongs to another user", entry->path);
  }
  if (parent >= 0) close(parent);
}

void apply_stage_entries(struct apply *apply) {
  struct answer *answer = apply->answer;
  for (size_t index = 0; index < apply->count && !answer->failed; index++) expect(apply, &apply->entries[index]);
  bool clear = answer->fields.length == 0;
  for (size_t index = 0; index < apply->count && clear && !answer->failed; index++) stage_entry(apply, &apply->entries[index]);
}
