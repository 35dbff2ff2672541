/*
 * A child made ahead. Entering a cgroup makes the kernel wait for all processors to pass a quiet point, which takes ten
 * milliseconds and more unless another process did the same a moment ago. So process 1 keeps one child that has entered the
 * work cgroups already and waits to be told what to do. It forks each command, as a child of process 1, so that the command is
 * as old as it looks; forks stay in the cgroup and need not wait. Between two commands it makes the file for the next log. It
 * holds no descriptors but its end of a socket, the folder of logs and the cgroups.
 */
#include "commands.h"
#include "../files/files.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The commands that had this stack before never returned from it. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define STACK_IS_FREE(stack) __asan_unpoison_memory_region(stack, sizeof stack)
#else
#define STACK_IS_FREE(stack) (void)0
#endif

#define HANDOVER_MAX (128u << 10) /* larger requests take the long way */
#define DESCRIPTORS 4
#define COMMAND_STACK (128u << 10)
#define COMMAND_STACK_READY (16u << 10)
#define IDLE_MS 5
#define RETRY_MS 100      /* after a waiting child was killed from inside */
#define COMMANDS_EACH 200 /* what a command allocated before its program ran stays with the child that forked it */
#define ORDERS_MAX 16     /* given to it and not carried out yet; more take the long way */

struct order {
  uint32_t work;
  uint32_t request_length, early_length;
  uint8_t has[DESCRIPTORS]; /* which descriptors came along */
  cpu_set_t cpus;           /* the limit may have changed since the child was made */
};

static struct {
  pid_t pid;
  int socket;
  unsigned given, orders; /* orders ever, and those that it has not said to be done with */
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

/* The memory is shared until the program runs, since copying it would take longer than all the rest: this child stands still
   until then. Where no further process may be made, it becomes the command itself. */
static void fork_command(struct work *work, char *stack_end) {
  if (clone(begin_command, stack_end, CLONE_VM | CLONE_VFORK | CLONE_PARENT | SIGCHLD, work) > 0) return;
  begin_command(work);
  _exit(126);
}

static void carry_out(const struct order *order, char *body, const int descriptors[DESCRIPTORS], char *stack_end) {
  struct failure failure;
  struct fields request = {.data = body, .length = order->request_length};
  if (order->work == WORK_FILE) {
    close(plan->logs);
    file_child(descriptors[0], &request, body + order->request_length, order->early_length);
  }
  if (plan->limits != NULL) plan->limits->chosen = order->cpus;
  take_cpus(&failure); /* the command tries again, and tells the failure */
  struct work work = {.request = &request, .descriptors = descriptors};
  if (exec_parse(&request, &work.exec) != NULL) _exit(126);
  fork_command(&work, stack_end);
}

/* The first order may come at once, and should not wait for what it may not need. */
static bool is_idle(int socket) { return poll(&(struct pollfd){.fd = socket, .events = POLLIN}, 1, IDLE_MS) == 0; }

static void wait_for_orders(int socket) __attribute__((noreturn));
static void wait_for_orders(int socket) {
  static char body[HANDOVER_MAX];
  _Alignas(16) char stack[COMMAND_STACK];
  struct failure failure;
  struct order order;
  keep_descriptors(socket);
  enter_cgroups(&failure); /* the command or file operation tries again, and tells the failure */
  take_cpus(&failure);
  if (is_idle(socket)) log_prepare(plan->logs);
  memset(stack + sizeof stack - COMMAND_STACK_READY, 0, COMMAND_STACK_READY);
  for (unsigned made = 0; made < COMMANDS_EACH; made++) {
    int received[DESCRIPTORS], descriptors[DESCRIPTORS];
    if (receive(socket, &order, body, received) <= 0) _exit(126);
    for (size_t at = 0, next = 0; at < DESCRIPTORS; at++) descriptors[at] = order.has[at] ? received[next++] : -1;
    STACK_IS_FREE(stack);
    carry_out(&order, body, descriptors, stack + sizeof stack);
    for (size_t at = 0; at < DESCRIPTORS; at++) {
      if (descriptors[at] >= 0) close(descriptors[at]);
    }
    log_prepare(plan->logs);
    send(socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL); /* process 1 may have let go of it; orders that wait are still carried out */
  }
  _exit(READY_CHILD_USED_UP);
}

void ready_child_make(void) {
  int pair[2];
  if (waiting.pid != 0 || stopping() || plan->work_cgroup_count == 0 || now_ms() < waiting.not_before) return;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return;
  pid_t pid = fork_child();
  if (pid == 0) wait_for_orders(pair[1]);
  close(pair[1]);
  if (pid < 0) close(pair[0]);
  else {
    waiting.pid = pid;
    waiting.socket = pair[0];
    waiting.given = waiting.orders = 0;
  }
}

static void let_go(void) {
  close(waiting.socket);
  waiting.pid = 0;
  waiting.socket = -1;
}

void ready_child_reaped(pid_t pid, int status) {
  if (pid != waiting.pid) return;
  let_go();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != READY_CHILD_USED_UP) waiting.not_before = now_ms() + RETRY_MS;
}

void ready_child_became(pid_t pid) {
  if (pid == waiting.pid) let_go();
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

/* One that is done with as many orders as it takes is left to its end. */
static bool takes_orders(void) {
  char done;
  while (waiting.orders > 0 && recv(waiting.socket, &done, 1, MSG_DONTWAIT) == 1) waiting.orders--;
  return waiting.orders < ORDERS_MAX && waiting.given < COMMANDS_EACH;
}

pid_t ready_child_take(uint32_t work, const struct fields *request, const char *early, size_t early_length, const int descriptors[DESCRIPTORS]) {
  if (waiting.pid == 0 || request->length + early_length > HANDOVER_MAX || !takes_orders()) return 0;
  struct order order = {.work = work, .request_length = (uint32_t)request->length, .early_length = (uint32_t)early_length};
  if (plan->limits != NULL) order.cpus = plan->limits->chosen;
  int present[DESCRIPTORS];
  size_t count = 0;
  for (size_t at = 0; at < DESCRIPTORS; at++) {
    order.has[at] = descriptors[at] >= 0;
    if (order.has[at]) present[count++] = descriptors[at];
  }
  pid_t pid = waiting.pid;
  if (!send_order(&order, request, early, present, count)) {
    if (errno == EAGAIN) return 0;
    kill(pid, SIGKILL);
    let_go();
    return 0;
  }
  kill(pid, SIGCONT); /* it may have been stopped from inside while it waited */
  waiting.given++;
  waiting.orders++;
  if (work == WORK_FILE || waiting.given == COMMANDS_EACH) let_go();
  return pid;
}
