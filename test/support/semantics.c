/* What programs expect of a file system, tried in the working folder: `name ok` or `name line N: error`. A folder called
   `base` with a file `base/inner/file` ("base\n") and a hard link pair `base/one`, `base/two` is there already. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MUST(condition) \
  do { \
    errno = 0; \
    if (!(condition)) return __LINE__; \
  } while (0)

static int put(const char *path, const char *text) {
  int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
  if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) return -1;
  return close(fd);
}

static int holds(const char *path, const char *text) {
  char buffer[256] = {0};
  int fd = open(path, O_RDONLY);
  if (fd < 0 || read(fd, buffer, sizeof buffer - 1) < 0) return 0;
  close(fd);
  return strcmp(buffer, text) == 0;
}

static ino_t inode(const char *path) {
  struct stat status;
  return lstat(path, &status) == 0 ? status.st_ino : 0;
}

static int rename_base_folder(void) {
  MUST(rename("base", "renamed") == 0);
  MUST(holds("renamed/inner/file", "base\n"));
  MUST(access("base", F_OK) != 0 && errno == ENOENT);
  MUST(rename("renamed/inner", "renamed/moved") == 0);
  MUST(holds("renamed/moved/file", "base\n"));
  MUST(rename("renamed/moved", "renamed/inner") == 0 && rename("renamed", "base") == 0);
  return 0;
}

static int rename_new_folder(void) {
  MUST(mkdir("new", 0755) == 0 && mkdir("new/deep", 0755) == 0 && put("new/deep/file", "x") == 0);
  MUST(rename("new", "newer") == 0 && holds("newer/deep/file", "x"));
  MUST(mkdir("empty", 0755) == 0 && rename("newer", "empty") == 0 && holds("empty/deep/file", "x"));
  MUST(rename("empty", "base") != 0 && (errno == ENOTEMPTY || errno == EEXIST));
  return 0;
}

static int hard_links(void) {
  struct stat status;
  MUST(put("h1", "1") == 0 && link("h1", "h2") == 0);
  MUST(inode("h1") == inode("h2") && stat("h1", &status) == 0 && status.st_nlink == 2);
  MUST(put("h2", "2") == 0 && holds("h1", "2"));
  MUST(unlink("h1") == 0 && holds("h2", "2") && stat("h2", &status) == 0 && status.st_nlink == 1);
  return 0;
}

/* An overlay breaks them at the first write: a limit of plain storage that is told, not hidden. */
static int hard_links_of_base(void) {
  MUST(inode("base/one") == inode("base/two"));
  MUST(put("base/one", "written\n") == 0);
  MUST(holds("base/two", "written\n"));
  return 0;
}

static int inodes_are_unique(void) {
  char path[64];
  ino_t seen[64];
  for (int i = 0; i < 64; i++) {
    snprintf(path, sizeof path, "unique%d", i);
    MUST(put(path, "") == 0 && (seen[i] = inode(path)) != 0);
    for (int j = 0; j < i; j++) MUST(seen[i] != seen[j]);
    MUST(seen[i] != inode("base") && seen[i] != inode("base/inner/file"));
  }
  return 0;
}

static int inode_stays_over_first_write(void) {
  struct stat before, after;
  int fd = open("base/inner/file", O_RDONLY);
  MUST(fd >= 0 && fstat(fd, &before) == 0);
  MUST(chmod("base/inner/file", 0640) == 0 && stat("base/inner/file", &after) == 0);
  MUST(before.st_ino == after.st_ino && before.st_dev == after.st_dev);
  return close(fd);
}

static int mapped_write(void) {
  MUST(put("mapped", "aaaa") == 0);
  int fd = open("mapped", O_RDWR);
  char *memory = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  MUST(memory != MAP_FAILED);
  memcpy(memory, "bbbb", 4);
  MUST(holds("mapped", "bbbb") && msync(memory, 4, MS_SYNC) == 0 && munmap(memory, 4) == 0);
  return close(fd);
}

static int sparse(void) {
  struct stat status;
  int fd = open("sparse", O_CREAT | O_RDWR, 0644);
  MUST(fd >= 0 && pwrite(fd, "end", 3, 64 << 20) == 3 && fsync(fd) == 0 && fstat(fd, &status) == 0);
  MUST(status.st_size == (64 << 20) + 3 && status.st_blocks * 512 < 1 << 20);
  MUST(lseek(fd, 0, SEEK_DATA) > 0);
  return close(fd);
}

static int attributes(void) {
  char value[8] = {0};
  MUST(put("attributes", "") == 0 && setxattr("attributes", "user.color", "red", 3, 0) == 0);
  MUST(getxattr("attributes", "user.color", value, sizeof value) == 3 && strcmp(value, "red") == 0);
  MUST(setxattr("base/inner/file", "user.color", "blue", 4, 0) == 0);
  MUST(removexattr("attributes", "user.color") == 0);
  return 0;
}

static int locks(void) {
  MUST(put("lock", "") == 0);
  int fd = open("lock", O_RDWR), other = open("lock", O_RDWR), status;
  MUST(flock(fd, LOCK_EX | LOCK_NB) == 0);
  MUST(flock(other, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK);
  MUST(flock(fd, LOCK_UN) == 0);
  struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
  MUST(fcntl(fd, F_SETLK, &range) == 0);
  pid_t child = fork();
  if (child == 0) _exit(fcntl(other, F_SETLK, &range) == 0 ? 1 : errno == EAGAIN || errno == EACCES ? 0 : 2);
  MUST(waitpid(child, &status, 0) == child && status == 0);
  range.l_len = 20;
  range.l_start = 100;
  MUST(fcntl(fd, F_OFD_SETLK, &range) == 0);
  return 0;
}

static int long_names(void) {
  char name[257] = {0};
  memset(name, 'n', 255);
  MUST(put(name, "x") == 0 && holds(name, "x") && unlink(name) == 0);
  name[255] = 'n';
  MUST(put(name, "x") != 0 && errno == ENAMETOOLONG);
  MUST(put("\xff\xfe\n \t\x01", "x") == 0 && unlink("\xff\xfe\n \t\x01") == 0);
  return 0;
}

static int links(void) {
  char target[64] = {0};
  MUST(symlink("nowhere/../x", "link") == 0 && readlink("link", target, sizeof target) == 12 && strcmp(target, "nowhere/../x") == 0);
  MUST(access("link", F_OK) != 0 && unlink("link") == 0);
  MUST(symlink("base/inner", "link") == 0 && holds("link/file", "base\n"));
  return 0;
}

static int times(void) {
  struct timespec wanted[2] = {{1000000000, 123456789}, {1000000000, 123456789}};
  struct stat status;
  MUST(put("times", "x") == 0 && utimensat(AT_FDCWD, "times", wanted, 0) == 0 && rename("times", "times2") == 0);
  MUST(stat("times2", &status) == 0 && status.st_mtim.tv_sec == 1000000000 && status.st_mtim.tv_nsec == 123456789);
  return 0;
}

static int temporary_file(void) {
  char path[64];
  int fd = open(".", O_TMPFILE | O_RDWR, 0600);
  MUST(fd >= 0 && write(fd, "tmp", 3) == 3);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  MUST(linkat(AT_FDCWD, path, AT_FDCWD, "linked", AT_SYMLINK_FOLLOW) == 0 && holds("linked", "tmp"));
  return close(fd);
}

static int unlinked_but_open(void) {
  char text[8] = {0};
  MUST(put("open", "still") == 0);
  int fd = open("open", O_RDWR);
  MUST(unlink("open") == 0 && access("open", F_OK) != 0);
  MUST(pwrite(fd, "S", 1, 0) == 1 && pread(fd, text, 5, 0) == 5 && strcmp(text, "Still") == 0);
  int base = open("base/gone", O_RDONLY);
  MUST(base >= 0 && unlink("base/gone") == 0 && read(base, text, 5) == 5);
  MUST(rmdir("base") != 0 && errno == ENOTEMPTY);
  return close(fd);
}

static int exchange(void) {
  MUST(put("left", "l") == 0 && put("right", "r") == 0);
  MUST(renameat2(AT_FDCWD, "left", AT_FDCWD, "right", RENAME_EXCHANGE) == 0 && holds("left", "r"));
  MUST(renameat2(AT_FDCWD, "left", AT_FDCWD, "right", RENAME_NOREPLACE) != 0 && errno == EEXIST);
  return 0;
}

static const struct { const char *name; int (*check)(void); } checks[] = {
  {"rename-base-folder", rename_base_folder}, {"rename-new-folder", rename_new_folder}, {"hard-links", hard_links},
  {"inodes-are-unique", inodes_are_unique}, {"inode-stays-over-first-write", inode_stays_over_first_write},
  {"mapped-write", mapped_write}, {"sparse", sparse}, {"attributes", attributes}, {"locks", locks}, {"long-names", long_names},
  {"links", links}, {"times", times}, {"temporary-file", temporary_file}, {"unlinked-but-open", unlinked_but_open},
  {"exchange", exchange}, {"hard-links-of-base", hard_links_of_base},
};

int main(void) {
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
    int line = checks[i].check();
    if (line == 0) printf("%s ok\n", checks[i].name);
    else printf("%s line %d: %s\n", checks[i].name, line, errno == 0 ? "wrong" : strerrorname_np(errno));
  }
  return 0;
}
