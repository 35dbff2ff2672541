/* Calls the kernel through its other doors: `i386:NAME` through int 0x80, `x32:NAME` with the second set of numbers.
   Prints `door:name result` as attack.c does. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHARED_FLAGS 0x10000000 /* CLONE_NEWUSER */

struct call {
  const char *name;
  long old, number; /* as i386 and as x86_64 count */
  long arguments[4];
};

static const struct call calls[] = {
  {"getpid", 20, SYS_getpid, {0}},
  {"unshare-user", 310, SYS_unshare, {SHARED_FLAGS}},
  {"keyctl", 288, SYS_keyctl, {0, -3, 0}},
  {"add_key", 286, SYS_add_key, {0, 0, 0, 0}},
  {"io_uring", 425, 425, {1, 0}},
  {"userfaultfd", 374, SYS_userfaultfd, {1}},
  {"bpf", 357, SYS_bpf, {0, 0, 0}},
  {"perf", 336, SYS_perf_event_open, {0, 0, 0, 0}},
  {"module", 350, SYS_finit_module, {-1, 0, 0}},
  {"open-by-handle", 342, SYS_open_by_handle_at, {-1, 0, 0}},
  {"mount", 21, SYS_mount, {0, 0, 0, 0}},
  {"fsopen", 430, 430, {0, 0}},
  {"packet", 359, SYS_socket, {17, 3, 0}},
  {"vsock", 359, SYS_socket, {40, 1, 0}},
  {"socketcall-packet", 102, SYS_socket, {17, 3, 0}},
};

static long through_old_door(long number, const long *a) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a[0]), "c"(a[1]), "d"(a[2]), "S"(a[3]) : "memory", "r8", "r9", "r10", "r11");
  return (int)result;
}

static long through_second_numbers(long number, const long *a) {
  long result = syscall(0x40000000 | number, a[0], a[1], a[2], a[3]);
  return result < 0 ? -errno : result;
}

static long call_through(const char *door, const struct call *call) {
  if (strcmp(door, "x32") == 0) return through_second_numbers(call->number, call->arguments);
  if (call->old != 102) return through_old_door(call->old, call->arguments);
  /* socketcall takes its arguments in memory that 32 bits can name. */
  uint32_t *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  for (int i = 0; i < 3; i++) memory[i] = (uint32_t)call->arguments[i];
  return through_old_door(102, (long[]){1, (long)memory, 0, 0});
}

static void attempt(const char *door, const struct call *call) {
  int ends[2], status;
  long result = 0;
  if (pipe(ends) != 0) return;
  pid_t child = fork();
  if (child == 0) {
    result = call_through(door, call);
    _exit(write(ends[1], &result, sizeof result) != sizeof result);
  }
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    printf("%s:%s SIG%s\n", door, call->name, sigabbrev_np(WTERMSIG(status)));
    return;
  }
  if (read(ends[0], &result, sizeof result) != sizeof result) result = -EIO;
  printf("%s:%s %s\n", door, call->name, result < 0 ? strerrorname_np((int)-result) : "done");
}

int main(void) {
  setbuf(stdout, NULL);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    attempt("i386", &calls[i]);
    attempt("x32", &calls[i]);
  }
  return 0;
}
