/* Does, by name, what databases, allocators and tools ask of the kernel, and prints `name result`: the name of the error, or "done". */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096
static int port;

static int fail(int error) {
  errno = error;
  return -1;
}

/* Reads the beginning of this program by libaio's calls. */
static long read_by_aio(void) {
  aio_context_t context = 0;
  char data[4] = "";
  int fd = open("/proc/self/exe", O_RDONLY);
  struct iocb request = {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = (unsigned)fd, .aio_buf = (unsigned long)data, .aio_nbytes = 4};
  struct iocb *requests[] = {&request};
  struct io_event event;
  if (syscall(SYS_io_setup, 128, &context) != 0) return -1;
  if (syscall(SYS_io_submit, context, 1, requests) != 1) return -1;
  if (syscall(SYS_io_getevents, context, 1, 1, &event, NULL) != 1) return -1;
  if (syscall(SYS_io_pgetevents, context, 0, 0, &event, NULL, NULL) != 0) return -1;
  if (syscall(SYS_io_cancel, context, &request, &event) == 0 || errno != EINVAL) return -1;
  if (syscall(SYS_io_destroy, context) != 0) return -1;
  return memcmp(data, "\177ELF", 4) == 0 ? 0 : fail(EIO);
}

/* Where memory lies: as libnuma, the JVM and databases ask for it. */
static long memory_policy(void) {
  int mode, status = -1;
  unsigned long nodes = 1;
  void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *(char *)page = 1;
  if (syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) != 0) return -1;
  if (syscall(SYS_set_mempolicy, 0, NULL, 0) != 0) return -1;
  if (syscall(SYS_mbind, page, PAGE, 2, &nodes, 64, 0) != 0) return -1;
  if (syscall(450, page, PAGE, 0, 0) != 0 && errno != ENOENT) return -1; /* set_mempolicy_home_node */
  if (syscall(SYS_migrate_pages, 0, 64, &nodes, &nodes) < 0) return -1;
  if (syscall(SYS_move_pages, 0, 1, &page, NULL, &status, 0) != 0) return -1;
  return status >= 0 ? 0 : fail(EIO);
}

struct mount_request {
  uint32_t size, spare;
  uint64_t mount, parameter, space;
};

static long list_mounts(void) {
  struct mount_request request = {.size = 24, .mount = UINT64_MAX /* LSMT_ROOT */};
  uint64_t mounts[64];
  long count = syscall(458, &request, mounts, 64, 0);
  return count == 0 ? fail(ENOENT) : count;
}

static long show_mount(void) {
  struct statx_ids { uint32_t mask; char rest[252]; } file = {0};
  if (syscall(SYS_statx, AT_FDCWD, "/", 0, 0x4000 /* STATX_MNT_ID_UNIQUE */, &file) != 0) return -1;
  struct mount_request request = {.size = 24, .parameter = 2 /* STATMOUNT_MNT_BASIC */};
  memcpy(&request.mount, (char *)&file + 144, sizeof request.mount);
  char answer[1024];
  return syscall(457, &request, answer, sizeof answer, 0);
}

/* Whether the kernel lists a socket that listens on this port, as `ss -tln` shows it. */
static long listed(int wanted) {
  struct { struct nlmsghdr header; struct inet_diag_req_v2 body; } request = {
    .header = {.nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
    .body = {.sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = 1 << 10},
  };
  int fd = socket(AF_NETLINK, SOCK_DGRAM, NETLINK_SOCK_DIAG);
  if (fd < 0 || send(fd, &request, sizeof request, 0) < 0) return -1;
  for (;;) {
    char answer[16384];
    ssize_t length = recv(fd, answer, sizeof answer, 0);
    if (length <= 0) return -1;
    for (struct nlmsghdr *part = (struct nlmsghdr *)answer; NLMSG_OK(part, length); part = NLMSG_NEXT(part, length)) {
      if (part->nlmsg_type == NLMSG_DONE) return fail(ENOENT);
      if (part->nlmsg_type == NLMSG_ERROR) return fail(-((struct nlmsgerr *)NLMSG_DATA(part))->error);
      struct inet_diag_msg *message = NLMSG_DATA(part);
      if (ntohs(message->id.idiag_sport) == wanted) return 0;
    }
  }
}

static long list_own_socket(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 1) != 0) return -1;
  if (getsockname(fd, (struct sockaddr *)&address, &size) != 0) return -1;
  return listed(ntohs(address.sin_port));
}

#define TRY(label, expression) \
  if (strcmp(name, label) == 0) return (long)(expression);

static long attempt(const char *name) {
  int pair[2];
  TRY("aio", read_by_aio())
  TRY("memory-policy", memory_policy())
  TRY("list-mounts", list_mounts())
  TRY("show-mount", show_mount())
  TRY("list-own-socket", list_own_socket())
  TRY("listener", listed(port))
  TRY("no-randomness", personality(ADDR_NO_RANDOMIZE))
  TRY("unix-raw", socket(AF_UNIX, SOCK_RAW, 0))
  TRY("x25", socket(9, SOCK_SEQPACKET, 0))
  TRY("can", socket(29, SOCK_RAW, 1))
  TRY("bluetooth", socket(31, SOCK_STREAM, 3))
  TRY("no-family", socket(200, SOCK_STREAM, 0))
  TRY("pair-inet", socketpair(AF_INET, SOCK_STREAM, 0, pair))
  TRY("pair-no-family", socketpair(200, SOCK_STREAM, 0, pair))
  TRY("netlink-no-protocol", socket(AF_NETLINK, SOCK_RAW, 30))
  return fail(EINVAL);
}

int main(int count, char **names) {
  for (int i = 1; i < count; i++) {
    char *value = strchr(names[i], '=');
    if (value != NULL) *value = '\0', port = atoi(value + 1);
    errno = 0;
    long result = attempt(names[i]);
    printf("%s %s\n", names[i], result < 0 ? strerrorname_np(errno) : "done");
    fflush(stdout);
  }
  return 0;
}
