/* A file handed to the other side of the connection, which moves its bytes at the speed of the disk. */
#include "job.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

/* File systems whose files are bytes on a disk or in memory. Others, such as those of the kernel's own state, could make who
   reads them wait, or do more than read. */
bool is_handed(const struct job *job, int fd) {
  struct statfs found;
  if (!field_flag(job->request, "hand") || fstatfs(fd, &found) != 0) return false;
  switch ((unsigned long)found.f_type) {
    case OVERLAYFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case TMPFS_MAGIC: return true;
    default: return false;
  }
}

void job_hand(struct job *job, int fd, const struct output *fields) {
  union {
    char room[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control = {0};
  struct header header = {.length = (uint32_t)fields->length, .kind = REPLY};
  struct iovec parts[2] = {{&header, sizeof header}, {fields->data, fields->length}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = control.room, .msg_controllen = sizeof control.room};
  struct cmsghdr *handed = CMSG_FIRSTHDR(&message);
  handed->cmsg_level = SOL_SOCKET;
  handed->cmsg_type = SCM_RIGHTS;
  handed->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(handed), &fd, sizeof fd);
  flush(job);
  if (sendmsg(job->fd, &message, MSG_NOSIGNAL) != (ssize_t)(sizeof header + fields->length)) _exit(1);
}
