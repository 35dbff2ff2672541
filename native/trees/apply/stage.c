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
  ssize_t list; /* bytes of the access list that its folder hands on; none: -1 */
  char access[4096];
};

/* The folder above a path that is there already; later ones are made like it. */
static int nearest_folder(const struct apply *apply, const char *path) {
  char parent[PATH_MAX];
  snprintf(parent, sizeof parent, "%s", path);
  for (char *slash = strrchr(parent, '/'); slash != NULL; slash = strrchr(parent, '/')) {
    *slash = '\0';
    int fd = open_beneath(apply->project, parent, O_RDONLY | O_DIRECTORY);
    if (fd >= 0) return fd;
  }
  return fcntl(apply->project, F_DUPFD_CLOEXEC, 0);
}

static void birth_in(const struct apply *apply, const char *path, struct birth *birth) {
  struct stat project = {0}, folder = {0};
  int fd = nearest_folder(apply, path);
  fstat(apply->project, &project);
  fstat(fd, &folder);
  birth->uid = project.st_uid;
  birth->setgid = (folder.st_mode & S_ISGID) != 0;
  birth->gid = birth->setgid ? folder.st_gid : project.st_gid;
  birth->allowed = (project.st_mode & 0775) | 0700;
  birth->list = fgetxattr(fd, "system.posix_acl_default", birth->access, sizeof birth->access);
  if (fd >= 0) close(fd);
}

/* With an access list, that says which bits are allowed. */
static int bear(int fd, const struct birth *birth, mode_t wanted) {
  struct stat status;
  if (fchownat(fd, "", birth->uid, birth->gid, AT_EMPTY_PATH) != 0) {
    /* Only root can give away. Others own what they make, in a group they are in. */
    if (errno != EPERM || geteuid() == 0) return -1;
    if (fchownat(fd, "", (uid_t)-1, birth->gid, AT_EMPTY_PATH) != 0 && errno != EPERM) return -1;
  }
  if (birth->list <= 0) return fchmod(fd, wanted & birth->allowed);
  if (fsetxattr(fd, "system.posix_acl_access", birth->access, (size_t)birth->list, 0) != 0 || fstat(fd, &status) != 0) return -1;
  return fchmod(fd, wanted & status.st_mode);
}

/* The change says whether the file is executable. If it is, every user who may read it may execute it. */
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

_Static_assert(CHUNK_MAX >= XATTR_LIST_MAX && CHUNK_MAX >= XATTR_SIZE_MAX, "a list of attributes, and a value, fit into the room");

static int copy_attributes(struct apply_room *room, int source, int target) {
  char *names = room->ours, *value = room->theirs;
  ssize_t length = flistxattr(source, names, CHUNK_MAX);
  for (ssize_t at = 0; at < length; at += (ssize_t)strlen(names + at) + 1) {
    if (attribute_stays(names + at)) continue;
    ssize_t size = fgetxattr(source, names + at, value, CHUNK_MAX);
    if (size < 0 || fsetxattr(target, names + at, value, (size_t)size, 0) == 0) continue;
    /* A label that only the system may give is given by the system. */
    if (strncmp(names + at, "security.", 9) != 0) return -1;
  }
  return 0;
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

/* As what is there now. */
static int inherit(const struct apply *apply, int present, const struct stat *now, int fd, bool executable) {
  if (fchown(fd, now->st_uid, now->st_gid) != 0 || copy_attributes(apply->room, present, fd) != 0) return -1;
  return fchmod(fd, executes(now->st_mode) == executable ? now->st_mode & 0777 : with_execution(now->st_mode, executable));
}

static int dress(const struct apply *apply, const struct apply_entry *entry, int fd) {
  struct stat now;
  struct birth birth;
  int present = open_present(apply, entry, &now), result;
  bool executable = entry->new.mode == 0100755;
  if (present >= 0 && S_ISREG(now.st_mode)) result = inherit(apply, present, &now, fd, executable);
  else {
    birth_in(apply, entry->path, &birth);
    result = bear(fd, &birth, executable ? 0777 : 0666);
  }
  if (result == 0 && entry->mode >= 0 && executes((mode_t)entry->mode) == executable) result = fchmod(fd, (mode_t)entry->mode & 0777);
  int error = errno;
  if (present >= 0) close(present);
  errno = error;
  return result;
}

static int own_link(const struct apply *apply, const struct apply_entry *entry, const char *slot) {
  struct stat now;
  struct birth birth;
  int present = open_present(apply, entry, &now);
  birth_in(apply, entry->path, &birth);
  if (present >= 0) close(present);
  uid_t uid = present >= 0 ? now.st_uid : birth.uid;
  gid_t gid = present >= 0 ? now.st_gid : birth.gid;
  int result = fchownat(apply->staging, slot, uid, gid, AT_SYMLINK_NOFOLLOW);
  return result != 0 && errno == EPERM && geteuid() != 0 ? 0 : result;
}

static int stage_link(struct apply *apply, const struct apply_entry *entry, const char *slot, const struct apply_place *place) {
  char target[PATH_MAX];
  size_t size = (size_t)place->size;
  errno = EINVAL;
  if (size == 0 || size >= sizeof target || apply_read_place(apply, place, 0, target, size) != 0 || memchr(target, '\0', size) != NULL) return -1;
  target[size] = '\0';
  return symlinkat(target, apply->staging, slot) != 0 ? -1 : own_link(apply, entry, slot);
}

static int write_file(const struct apply *apply, const struct apply_entry *entry, const struct apply_place *place, int fd) {
  int result = apply_copy(apply, place, fd);
  return result == 0 ? dress(apply, entry, fd) : result;
}

static int stage_near(struct apply *apply, const struct apply_entry *entry, const char *slot, const struct apply_place *place) {
  int fd = apply_near_create(&apply->near, apply, entry->path);
  if (fd < 0) return -1;
  int result = write_file(apply, entry, place, fd);
  if (result == 0) result = apply_near_name(fd, apply, slot);
  close(fd);
  return result;
}

static int stage_file(struct apply *apply, const struct apply_entry *entry, const char *slot, const struct apply_place *place) {
  /* Whatever is in the way of it, the ordinary way tells. */
  if (stage_near(apply, entry, slot, place) == 0) return 0;
  int fd = openat(apply->staging, slot, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  int result = write_file(apply, entry, place, fd);
  int error = errno;
  close(fd);
  errno = error;
  return result;
}

static int stage_content(struct apply *apply, const struct apply_entry *entry, const char *slot) {
  const struct apply_place *place = apply_place_of(apply, entry->new.id);
  return place == NULL ? -1 : (entry->new.mode == 0120000 ? stage_link : stage_file)(apply, entry, slot, place);
}

static int stage_folder(const struct apply *apply, const struct apply_entry *entry, const char *slot) {
  struct birth birth;
  birth_in(apply, entry->path, &birth);
  if (mkdirat(apply->staging, slot, 0700) != 0) return -1;
  int fd = open_beneath(apply->staging, slot, O_RDONLY | O_DIRECTORY);
  int result = fd < 0 ? -1 : bear(fd, &birth, 0777);
  struct stat status;
  if (result == 0 && birth.list > 0) result = fsetxattr(fd, "system.posix_acl_default", birth.access, (size_t)birth.list, 0);
  if (result == 0 && birth.setgid && (result = fstat(fd, &status)) == 0) result = fchmod(fd, (status.st_mode & 0777) | S_ISGID);
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
  bool twin = entry->kind != MAKE_FOLDER && apply_stage_twin(apply, entry, slot);
  int result = twin ? 0 : entry->kind == MAKE_FOLDER ? stage_folder(apply, entry, slot) : stage_content(apply, entry, slot);
  if (result == 0 && !twin) result = set_times(apply->staging, slot, entry);
  if (result == 0) result = fstatat(apply->staging, slot, &status, AT_SYMLINK_NOFOLLOW);
  if (result != 0) {
    refuse_errno(apply->answer, "stage", entry->path);
    return;
  }
  entry->inode = status.st_ino;
  entry->staged_size = status.st_size;
  entry->staged_mtime = apply_nanoseconds(status.st_mtim);
}

/* Whether a file can be exchanged without a change of owner: an ordinary user can't give files to another. */
static bool belongs(const struct apply_entry *entry, int parent, const char *name) {
  struct stat status;
  return geteuid() == 0 || entry->kind != CHANGE || fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || status.st_uid == geteuid();
}

/* Tells all late edits at once before anything is done; carrying out looks again. */
static void expect(struct apply *apply, struct apply_entry *entry) {
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
  apply_each(apply, expect);
  if (!answer->failed && answer->fields.length == 0) apply_each(apply, stage_entry);
}
