/* The system call filter. The rules become sorted ranges of numbers, and the ranges a binary search in BPF, so that any
   call is judged after about eight comparisons; the kernel moreover remembers which numbers are always allowed. */
#include "walls.h"
#include "seccomp_rules.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "no system call rules for this architecture"
#endif

#define NUMBERS 512                 /* every known call number lies below */
#define X32_BIT 0x40000000u         /* the second set of numbers on x86_64 */
#define NAMESPACE_FLAGS 0x7e020000u /* CLONE_NEW*, as clone takes them */
#define REFUSE (SECCOMP_RET_ERRNO | EPERM)
#define ABSENT (SECCOMP_RET_ERRNO | ENOSYS)
#define ARGUMENT(index) (offsetof(struct seccomp_data, args) + 8 * (index)) /* low half: all checked arguments are ints */

enum action { MISSING, ALLOW, DENY, ASK, CHECK_CLONE, CHECK_SOCKET, CHECK_SOCKETPAIR, CHECK_IOCTL, CHECK_PERSONALITY, CHECK_PRLIMIT, KILL };

struct range {
  uint32_t first;
  enum action action;
};

struct program {
  struct sock_filter code[4096];
  size_t length;
};

static void emit(struct program *program, uint16_t code, uint8_t yes, uint8_t no, uint32_t value) {
  program->code[program->length++] = (struct sock_filter){code, yes, no, value};
}

static void load(struct program *program, uint32_t offset) { emit(program, BPF_LD | BPF_W | BPF_ABS, 0, 0, offset); }
static void give(struct program *program, uint32_t verdict) { emit(program, BPF_RET | BPF_K, 0, 0, verdict); }
/* Gives a verdict when the loaded value equals. */
static void when(struct program *program, uint32_t value, uint32_t verdict) {
  emit(program, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value);
  give(program, verdict);
}

static void check_clone(struct program *program) {
  load(program, ARGUMENT(0));
  emit(program, BPF_JMP | BPF_JSET | BPF_K, 0, 1, NAMESPACE_FLAGS);
  give(program, REFUSE);
  give(program, SECCOMP_RET_ALLOW);
}

/* Unix sockets, internet sockets that are not raw, and netlink for routes and for the list of the sandbox's own sockets.
   Other families are answered as by a kernel that lacks them, so that programs do without. For a protocol it does not have
   yet the kernel would load a module of the host, so only those that programs use exist: ICMP, TCP, UDP, ICMPv6, and TCP
   over many paths. */
static void check_socket(struct program *program) {
  static const uint32_t protocols[] = {0, 1, 6, 17, 58, 262};
  const size_t count = sizeof protocols / sizeof *protocols;
  load(program, ARGUMENT(0));
  when(program, AF_UNIX, SECCOMP_RET_ALLOW);
  emit(program, BPF_JMP | BPF_JEQ | BPF_K, 3, 0, AF_INET);
  emit(program, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, AF_INET6);
  emit(program, BPF_JMP | BPF_JEQ | BPF_K, (uint8_t)(9 + 2 * count), 0, AF_NETLINK);
  give(program, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
  load(program, ARGUMENT(1));
  emit(program, BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xf);
  when(program, SOCK_RAW, REFUSE);
  when(program, SOCK_PACKET, REFUSE);
  load(program, ARGUMENT(2));
  for (size_t i = 0; i < count; i++) when(program, protocols[i], SECCOMP_RET_ALLOW);
  give(program, SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
  load(program, ARGUMENT(2));
  when(program, NETLINK_ROUTE, SECCOMP_RET_ALLOW);
  when(program, NETLINK_SOCK_DIAG, SECCOMP_RET_ALLOW);
  /* Also of audit: PAM takes this for a kernel without it; a plain refusal ends su and sudo. */
  give(program, SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
}

/* The kernel makes the sockets before it finds that their family has no pairs: the same answers, without the sockets. */
static void check_socketpair(struct program *program) {
  load(program, ARGUMENT(0));
  when(program, AF_UNIX, SECCOMP_RET_ALLOW);
  when(program, AF_INET, SECCOMP_RET_ERRNO | EOPNOTSUPP);
  when(program, AF_INET6, SECCOMP_RET_ERRNO | EOPNOTSUPP);
  when(program, AF_NETLINK, SECCOMP_RET_ERRNO | EOPNOTSUPP);
  give(program, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}

/* TIOCSTI and TIOCLINUX type into a terminal as if someone had; TIOCSETD loads line disciplines. A btrfs subvolume made
   inside would be empty in every snapshot and fork: to programs that would make one, the file system is not btrfs. */
static void check_ioctl(struct program *program) {
  static const uint32_t make_subvolume[] = {0x50009401, 0x5000940e, 0x50009417, 0x50009418};
  load(program, ARGUMENT(1));
  for (size_t i = 0; i < sizeof make_subvolume / sizeof *make_subvolume; i++) when(program, make_subvolume[i], SECCOMP_RET_ERRNO | ENOTTY);
  when(program, 0x5412, REFUSE);
  when(program, 0x541c, REFUSE);
  when(program, 0x5423, REFUSE);
  give(program, SECCOMP_RET_ALLOW);
}

/* What a process may wish for itself: an older name of the kernel, and where and how its memory lies (debuggers and
   sanitizers turn the randomness off). Not page zero, nor the execution domains of other systems. */
static void check_personality(struct program *program) {
  const uint32_t harmless = PER_LINUX32 | UNAME26 | ADDR_NO_RANDOMIZE | ADDR_COMPAT_LAYOUT | READ_IMPLIES_EXEC;
  load(program, ARGUMENT(0));
  when(program, 0xffffffff, SECCOMP_RET_ALLOW);
  emit(program, BPF_JMP | BPF_JSET | BPF_K, 0, 1, ~harmless);
  give(program, REFUSE);
  give(program, SECCOMP_RET_ALLOW);
}

/* Process 1 has the same ids as root inside, which is all the kernel asks for: without descriptors left it would spin. */
static void check_prlimit(struct program *program) {
  load(program, ARGUMENT(0));
  when(program, 1, REFUSE);
  give(program, SECCOMP_RET_ALLOW);
}

static void emit_action(struct program *program, enum action action) {
  switch (action) {
    case ALLOW: give(program, SECCOMP_RET_ALLOW); break;
    case DENY: give(program, REFUSE); break;
    case KILL: give(program, SECCOMP_RET_KILL_PROCESS); break;
    case CHECK_CLONE: check_clone(program); break;
    case CHECK_SOCKET: check_socket(program); break;
    case CHECK_SOCKETPAIR: check_socketpair(program); break;
    case CHECK_IOCTL: check_ioctl(program); break;
    case CHECK_PERSONALITY: check_personality(program); break;
    case CHECK_PRLIMIT: check_prlimit(program); break;
    case ASK: give(program, SECCOMP_RET_USER_NOTIF); break;
    case MISSING: give(program, ABSENT); break;
  }
}

/* Conditional jumps reach 255 instructions only, so the far side is reached by an unconditional one. */
static void emit_search(struct program *program, const struct range *ranges, size_t count) {
  if (count == 1) {
    emit_action(program, ranges[0].action);
    return;
  }
  size_t middle = count / 2;
  emit(program, BPF_JMP | BPF_JGE | BPF_K, 0, 1, ranges[middle].first);
  size_t jump = program->length;
  emit(program, BPF_JMP | BPF_JA, 0, 0, 0);
  emit_search(program, ranges, middle);
  program->code[jump].k = (uint32_t)(program->length - jump - 1);
  emit_search(program, ranges + middle, count - middle);
}

static void fill_actions(unsigned char *actions, bool ask) {
  memset(actions, MISSING, NUMBERS);
  for (size_t i = 0; i < sizeof allowed_calls / sizeof *allowed_calls; i++) actions[allowed_calls[i]] = ALLOW;
  for (size_t i = 0; i < sizeof refused_calls / sizeof *refused_calls; i++) actions[refused_calls[i]] = DENY;
  actions[SYS_clone] = CHECK_CLONE; /* clone3 hides its flags behind a pointer: it stays missing, and libc falls back */
  actions[SYS_socket] = CHECK_SOCKET;
  actions[SYS_socketpair] = CHECK_SOCKETPAIR;
  actions[SYS_ioctl] = CHECK_IOCTL;
  actions[SYS_personality] = CHECK_PERSONALITY;
  actions[SYS_prlimit64] = CHECK_PRLIMIT;
  if (ask) actions[SYS_io_setup] = ASK; /* init/aio.c answers */
}

static size_t fill_ranges(struct range *ranges, bool ask) {
  unsigned char actions[NUMBERS];
  size_t count = 0;
  fill_actions(actions, ask);
  for (uint32_t number = 0; number < NUMBERS; number++)
    if (count == 0 || ranges[count - 1].action != (enum action)actions[number]) ranges[count++] = (struct range){number, actions[number]};
  ranges[count++] = (struct range){NUMBERS, MISSING};
#ifdef __x86_64__
  ranges[count++] = (struct range){X32_BIT, KILL};
  ranges[count++] = (struct range){0xffffffff, MISSING}; /* a debugger's way to skip a call */
#endif
  return count;
}

static int install(bool ask) {
  static struct program program;
  struct range ranges[NUMBERS + 4];
  size_t count = fill_ranges(ranges, ask);
  program.length = 0;
  load(&program, offsetof(struct seccomp_data, arch));
  emit(&program, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, NATIVE_ARCH);
  give(&program, SECCOMP_RET_KILL_PROCESS);
  load(&program, offsetof(struct seccomp_data, nr));
  emit_search(&program, ranges, count);
  struct sock_fprog filter = {.len = (unsigned short)program.length, .filter = program.code};
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, ask ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0, &filter);
}

/* Process 1 puts it on once, while it has the right to; everything it starts inherits it, whether or not privileges are
   kept. A second call finds it on. A kernel allows one filter that asks: where the server itself is under one, as in some
   containers, there is no io_setup. */
int install_seccomp(int *asked) {
  static bool installed;
  if (installed) return 0;
  if (asked != NULL) *asked = install(true);
  if ((asked == NULL || *asked < 0) && install(false) != 0) return -1;
  installed = true;
  return 0;
}
