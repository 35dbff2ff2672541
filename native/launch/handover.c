/* What the launcher tells process 1 on their channel until it is ready. Either may die meanwhile: then the other one ends. */
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define MAPPED 'm'
#define MOUNTS 'r' /* goes with a descriptor */

int tell_mapped(struct launch *launch) { return write_all(launch->channel, &(char){MAPPED}, 1) == 0 ? 0 : failed(launch, "process 1"); }

int await_mapped(struct launch *launch) {
  char byte;
  if (read_all(launch->channel, &byte, 1) != 0) _exit(1);
  if (byte == MAPPED) return 0;
  errno = EPROTO;
  return failed(launch, "id maps");
}

static int send_mounts(int channel, int mounts) {
  char byte = MOUNTS, room[CMSG_SPACE(sizeof mounts)] = {0};
  struct iovec content = {.iov_base = &byte, .iov_len = 1};
  struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  *rights = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof mounts)};
  memcpy(CMSG_DATA(rights), &mounts, sizeof mounts);
  ssize_t sent;
  while ((sent = sendmsg(channel, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) continue;
  return sent == 1 ? 0 : -1;
}

static int receive_mounts(int channel) {
  int mounts = -1;
  char byte, room[CMSG_SPACE(sizeof mounts)];
  struct iovec content = {.iov_base = &byte, .iov_len = 1};
  struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  ssize_t received;
  while ((received = recvmsg(channel, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) continue;
  struct cmsghdr *rights = received == 1 ? CMSG_FIRSTHDR(&message) : NULL;
  if (rights != NULL && rights->cmsg_type == SCM_RIGHTS && rights->cmsg_len == CMSG_LEN(sizeof mounts)) memcpy(&mounts, CMSG_DATA(rights), sizeof mounts);
  return mounts;
}

int give_disk(struct launch *launch, const struct fields *disk) {
  if (send_frame(launch->channel, REQUEST, disk->data, disk->length) != 0) return failed(launch, "process 1");
  if (!launch->root_mode) return 0;
  int mounts = call_open_tree(AT_FDCWD, STACK, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
  if (mounts < 0) return failed(launch, "clone root");
  if (send_mounts(launch->channel, mounts) != 0) return failed(launch, "process 1");
  close(mounts);
  return 0;
}

int take_disk(struct launch *launch, int *mounts) {
  struct header header;
  char *payload, *copy;
  *mounts = -1;
  if (receive_frame(launch->channel, &header, &payload) != 0) _exit(1);
  struct fields disk = {.data = payload, .length = header.length};
  if ((copy = malloc(disk.length + 1)) == NULL) return failed(launch, "disk");
  if (parse_disk(launch, &disk, copy) != 0) return -1;
  if (launch->root_mode && (*mounts = receive_mounts(launch->channel)) < 0) _exit(1);
  return 0;
}
