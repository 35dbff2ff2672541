/* A file that process 1 has opened inside. Whatever made the descriptor, it is used only if it is of a plain file on a plain file system. */
#include "carry.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static bool is_plain(int fd, bool into) {
  struct stat stat;
  struct statfs system;
  if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode) || fstatfs(fd, &system) != 0) return false;
  int mode = fcntl(fd, F_GETFL) & O_ACCMODE;
  if (mode != O_RDWR && mode != (into ? O_WRONLY : O_RDONLY)) return false;
  unsigned long type = (unsigned long)system.f_type;
  return type == OVERLAYFS_SUPER_MAGIC || type == BTRFS_SUPER_MAGIC || type == EXT4_SUPER_MAGIC || type == XFS_SUPER_MAGIC || type == TMPFS_MAGIC;
}

/* At most one descriptor comes, and with the first bytes of an answer. */
static ssize_t receive_first(int cell, struct header *header, int *file) {
  union {
    char room[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control;
  struct iovec part = {header, sizeof *header};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
  ssize_t count;
  do count = recvmsg(cell, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
  while (count < 0 && errno == EINTR);
  *file = -1;
  struct cmsghdr *handed = count > 0 ? CMSG_FIRSTHDR(&message) : NULL;
  if (handed == NULL || handed->cmsg_level != SOL_SOCKET || handed->cmsg_type != SCM_RIGHTS || handed->cmsg_len != CMSG_LEN(sizeof(int))) return count;
  memcpy(file, CMSG_DATA(handed), sizeof *file);
  return count;
}

int receive_file(int cell, bool into, int *file, char **refusal, size_t *length) {
  struct header header;
  ssize_t count = receive_first(cell, &header, file);
  if (count != sizeof header || header.length > FRAME_MAX) return FILE_OTHERWISE;
  *length = header.length;
  *refusal = malloc(header.length + 1);
  if (*refusal == NULL || read_all(cell, *refusal, header.length) != 0) return FILE_OTHERWISE;
  (*refusal)[header.length] = '\0';
  if (header.kind == ERROR) return FILE_REFUSED;
  struct fields fields = {*refusal, header.length};
  bool handed = header.kind == REPLY && fields_valid(&fields) && field_flag(&fields, "handed");
  return handed && *file >= 0 && is_plain(*file, into) ? FILE_HANDED : FILE_OTHERWISE;
}
