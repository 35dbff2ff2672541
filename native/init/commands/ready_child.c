/*
 * A child made ahead. Entering a cgroup makes the kernel wait for all processors to pass a quiet point, which takes ten
 * milliseconds and more unless another process did the same a moment ago. So process 1 keeps one child that has entered the
 * work cgroups already, made the file for the next log, and waits to be told what to do. A command is forked by it then, as
 * a child of process 1, so that it is as old as it looks; forks stay in the cgroup and need not wait. It holds no descriptor
 * but its end of a socket.
 */
#include "commands.h"
#include "../files/files.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HANDOVER_MAX (128u << 10) /* larger requests take the long way */
#define DESCRIPTORS 4
#define COMMAND_STACK (128u << 10)
#define COMMAND_STACK_READY (16u << 10)
#define RETRY_MS 100 /* after a waiting child was killed from inside */

struct order {
  uint32_t work;
  uint32_t request_length, early_length;
  uint8_t has[DESCRIPTORS]; /* which descriptors came along */
  cpu_set_t cpus;           /* the limit may have changed since the child was made */
};

static struct {
  pid_t pid;
  int socket;
  int64_t not_before;
} waiting = {.socket = -1};

static int by_number(const void *left, const void *right) { return *(const int *)left - *(const int *)right; }

/* A copy of another command's pipe would keep that from seeing its end. */
static void keep_descriptors(int socket) {
  int keep[64] = {socket};
  size_t count = 1;
  if (plan->logs >= 0) keep[count++] = plan->logs;
  for (size_t at = 0; at < plan->work_cgroup_count && count < 64; at++) keep[count++] = plan->work_cgroups[at];
  qsort(keep, count, sizeof *keep, by_number);
  unsigned from = 3;
  for (size_t at = 0; at < count; at++) {
    if ((unsigned)keep[at] > from && syscall(SYS_close_range, from, (unsigned)keep[at] - 1, 0) != 0) _exit(1);
    from = (unsigned)keep[at] + 1;
  }
  if (syscall(SYS_close_range, from, ~0u, 0) != 0) _exit(1);
}

static ssize_t receive(int socket, struct order *order, char *body, int descriptors[DESCRIPTORS]) {
  union {
    char room[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
    struct cmsghdr align;
  } control;
  struct iovec parts[2] = {{order, sizeof *order}, {body, HANDOVER_MAX}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = control.room, .msg_controllen = sizeof control.room};
  ssize_t count;
  do count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (count < 0 && errno == EINTR);
  /* Root inside may lower this child's descriptor limit: then some do not arrive, and nothing tells which. */
  if (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) return -1;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (count > 0 && header != NULL) memcpy(descriptors, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
  return count;
}

struct work {
  const struct fields *request;
  struct exec_request exec;
  const int *descriptors;
};

/* In the command's own process. Its number goes first: the child made ahead may be reaped before. */
static int begin_command(void *argument) {
  const struct work *work = argument;
  pid_t pid = getpid();
  if (write(work->descriptors[3], &pid, sizeof pid) != sizeof pid) _exit(126);
  spawn(work->request, &work->exec, work->descriptors, work->descriptors[3]);
}

/* The memory is shared until the program runs, since copying it would take longer than all the rest: this child does nothing
   more than end. Where no further process may be made, it becomes the command itself. */
static void fork_command(struct work *work, char *stack_end) __attribute__((noreturn));
static void fork_command(struct work *work, char *stack_end) {
  if (clone(begin_command, stack_end, CLONE_VM | CLONE_PARENT | SIGCHLD, work) > 0) _exit(READY_CHILD_FORKED);
  begin_command(work);
  _exit(126);
}

static void wait_for_order(int socket) __attribute__((noreturn));
static void wait_for_order(int socket) {
  static char body[HANDOVER_MAX];
  _Alignas(16) char stack[COMMAND_STACK];
  struct failure failure;
  struct order order;
  int received[DESCRIPTORS], descriptors[DESCRIPTORS];
  keep_descriptors(socket);
  enter_cgroups(&failure); /* the command or file operation tries again, and tells the failure */
  take_cpus(&failure);
  log_prepare(plan->logs);
  close(plan->logs);
  memset(stack + sizeof stack - COMMAND_STACK_READY, 0, COMMAND_STACK_READY);
  if (receive(socket, &order, body, received) <= 0) _exit(126);
  for (size_t at = 0, next = 0; at < DESCRIPTORS; at++) descriptors[at] = order.has[at] ? received[next++] : -1;
  struct fields request = {.data = body, .length = order.request_length};
  if (order.work == WORK_FILE) file_child(descriptors[0], &request, body + order.request_length, order.early_length);
  if (plan->limits != NULL) plan->limits->chosen = order.cpus;
  struct work work = {.request = &request, .descriptors = descriptors};
  if (exec_parse(&request, &work.exec) != NULL) _exit(126);
  fork_command(&work, stack + sizeof stack);
}

void ready_child_make(void) {
  int pair[2];
  if (waiting.pid != 0 || stopping() || plan->work_cgroup_count == 0 || now_ms() < waiting.not_before) return;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return;
  pid_t pid = fork_child();
  if (pid == 0) wait_for_order(pair[1]);
  close(pair[1]);
  if (pid < 0) close(pair[0]);
  else {
    waiting.pid = pid;
    waiting.socket = pair[0];
  }
}

bool ready_child_reaped(pid_t pid) {
  if (pid != waiting.pid) return false;
  close(waiting.socket);
  waiting.pid = 0;
  waiting.socket = -1;
  waiting.not_before = now_ms() + RETRY_MS;
  return true;
}

static bool send_order(const struct order *order, const struct fields *request, const char *early, const int *descriptors, size_t count) {
  union {
    char room[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
    struct cmsghdr align;
  } control = {0};
  struct iovec parts[3] = {{(void *)order, sizeof *order}, {(void *)request->data, request->length}, {(void *)early, order->early_length}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3, .msg_control = control.room, .msg_controllen = CMSG_SPACE(count * sizeof(int))};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(count * sizeof(int));
  memcpy(CMSG_DATA(header), descriptors, count * sizeof(int));
  return sendmsg(waiting.socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

pid_t ready_child_take(uint32_t work, const struct fields *request, const char *early, size_t early_length, const int descriptors[DESCRIPTORS]) {
  if (waiting.pid == 0 || request->length + early_length > HANDOVER_MAX) return 0;
  struct order order = {.work = work, .request_length = (uint32_t)request->length, .early_length = (uint32_t)early_length};
  if (plan->limits != NULL) order.cpus = plan->limits->chosen;
  int present[DESCRIPTORS];
  size_t count = 0;
  for (size_t at = 0; at < DESCRIPTORS; at++) {
    order.has[at] = descriptors[at] >= 0;
    if (order.has[at]) present[count++] = descriptors[at];
  }
  pid_t pid = waiting.pid;
  bool sent = send_order(&order, request, early, present, count);
  close(waiting.socket);
  waiting.pid = 0;
  waiting.socket = -1;
  kill(pid, sent ? SIGCONT : SIGKILL); /* it may have been stopped from inside while it waited */
  return sent ? pid : 0;
}
