/* Opening and listing folders without following a link or entering another mount. */
#include "walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int open_beneath(int root, const char *path, int flags) {
  struct open_how how = {
      .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC | O_NOFOLLOW),
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
  };
  int fd;
  /* EAGAIN: something was renamed meanwhile and the kernel could not be sure; asking again is all it needs. */
  for (int tries = 0; tries < 64; tries++) {
    fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    if (fd >= 0 || errno != EAGAIN) break;
  }
  return fd;
}

bool open_parent(const char *path, int *parent, const char **name, struct answer *answer) {
  const char *slash = strrchr(path, '/');
  if (slash == NULL || slash[1] == '\0' || strcmp(slash + 1, "..") == 0 || strcmp(slash + 1, ".") == 0) {
    refuse(answer, "bad-request", EINVAL, "path", "%s must be absolute and end in a name", path);
    return false;
  }
  char *folder = slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
  *parent = folder == NULL ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (*parent < 0) refuse_errno(answer, "path", path);
  free(folder);
  *name = slash + 1;
  return *parent >= 0;
}

static int by_bytes(const void *left, const void *right) { return strcmp(*(const char *const *)left, *(const char *const *)right); }

static bool is_dots(const char *name) { return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0')); }

static bool grow(void **data, size_t *room, size_t wanted, size_t size) {
  if (wanted <= *room) return true;
  size_t next = *room == 0 ? 1024 : *room;
  while (next < wanted) next *= 2;
  void *grown = realloc(*data, next * size);
  if (grown == NULL) return false;
  *data = grown;
  *room = next;
  return true;
}

int names_read(int folder, struct names *names) {
  names->length = names->count = 0;
  ssize_t count;
  do {
    if (!grow((void **)&names->data, &names->capacity, names->length + (64u << 10), 1)) return -1;
    count = getdents64(folder, names->data + names->length, names->capacity - names->length);
    if (count < 0) return -1;
    names->length += (size_t)count;
  } while (count > 0);
  for (size_t at = 0; at < names->length;) {
    const struct dirent64 *entry = (const void *)(names->data + at);
    at += entry->d_reclen;
    if (is_dots(entry->d_name)) continue;
    if (!grow((void **)&names->sorted, &names->room, names->count + 1, sizeof *names->sorted)) return -1;
    names->sorted[names->count++] = entry->d_name;
  }
  if (names->count > 0) qsort(names->sorted, names->count, sizeof *names->sorted, by_bytes);
  return 0;
}

static const struct dirent64 *entry_of(const char *name) { return (const void *)(name - offsetof(struct dirent64, d_name)); }

uint64_t name_inode(const char *name) { return entry_of(name)->d_ino; }

unsigned char name_type(const char *name) { return entry_of(name)->d_type; }

void names_free(struct names *names) {
  free(names->data);
  free(names->sorted);
  *names = (struct names){0};
}
