/* Tries, by name, what a sandbox must not be able to do, and prints `name result`: the name of the error, SIGSYS, or "done". */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLED (-2)
static const char *argument = "";

static long in_child(void (*attack)(void)) {
  pid_t child = fork();
  if (child == 0) {
    attack();
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS ? KILLED : 0;
}

#ifdef __x86_64__
static void old_gate(void) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
}
static void second_numbers(void) { syscall(0x40000000 | SYS_getpid); }
#else
static void old_gate(void) { raise(SIGSYS); }
static void second_numbers(void) { raise(SIGSYS); }
#endif

static long clone_with(unsigned long flags) {
  long child = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  return child;
}

static long read_process_1(void) {
  char byte;
  struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};
  return process_vm_readv(1, &here, 1, &there, 1, 0);
}

static long any_descriptor_of_1(void) {
  int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
  for (int number = 0; number < 32; number++)
    if (syscall(SYS_pidfd_getfd, pidfd, number, 0) >= 0) return 0;
  return -1;
}

static long abstract(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t length = strlen(argument);
  memcpy(address.sun_path + 1, argument, length);
  return connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length));
}

static int open_of(int process, const char *what, int flags) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", process, what);
  return open(path, flags);
}

/* The request carries a descriptor and a name. */
static int make_subvolume(unsigned long request) {
  struct {
    long long descriptor;
    char name[4088];
  } arguments = {.name = "subvolume"};
  return ioctl(open(".", O_RDONLY), request, &arguments);
}

static int limit(int process, int what, rlim_t soft) {
  struct rlimit present;
  if (prlimit(process, (__rlimit_resource_t)what, NULL, &present) != 0) return -1;
  present.rlim_cur = soft;
  return prlimit(process, (__rlimit_resource_t)what, &present, NULL);
}

/* When no more signals may wait, the kernel delivers one without telling who sent it, as if it had no sender. */
static long signal_of_nobody(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  while (sigqueue(getpid(), SIGRTMIN, (union sigval){0}) == 0) continue;
  return sigqueue(1, SIGTERM, (union sigval){0});
}

static int set_real_time(void) {
  struct sched_param parameter = {.sched_priority = 1};
  return sched_setscheduler(0, SCHED_FIFO, &parameter);
}

#define TRY(label, expression) \
  if (strcmp(name, label) == 0) return (long)(expression);

static long attack(const char *name) {
  TRY("unshare-user", unshare(CLONE_NEWUSER))
  TRY("unshare-mounts", unshare(CLONE_NEWNS))
  TRY("clone-user", clone_with(CLONE_NEWUSER))
  TRY("clone-network", clone_with(CLONE_NEWUSER | CLONE_NEWNET))
  TRY("clone3", syscall(435, 0, 0))
  TRY("io_uring", syscall(425, 1, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"))
  TRY("userfaultfd", syscall(SYS_userfaultfd, 1))
  TRY("bpf", syscall(SYS_bpf, 0, 0, 0))
  TRY("perf", syscall(SYS_perf_event_open, 0, 0, 0, 0, 0))
  TRY("keyctl", syscall(SYS_keyctl, 0, -3, 0))
  TRY("add_key", syscall(SYS_add_key, "user", "x", "x", 1, -3))
  TRY("kexec", syscall(SYS_kexec_load, 0, 0, 0, 0))
  TRY("module", syscall(SYS_finit_module, -1, "", 0))
  TRY("open-by-handle", syscall(SYS_open_by_handle_at, -1, 0, 0))
  TRY("vsock", socket(40, SOCK_STREAM, 0))
  TRY("alg", socket(38, SOCK_SEQPACKET, 0))
  TRY("packet", socket(AF_PACKET, SOCK_RAW, 0))
  TRY("raw", socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, 1))
  TRY("raw6", socket(AF_INET6, SOCK_RAW, 58))
  TRY("netlink-generic", socket(AF_NETLINK, SOCK_RAW, 16))
  TRY("netlink-netfilter", socket(AF_NETLINK, SOCK_RAW, 12))
  TRY("udplite", socket(AF_INET, SOCK_DGRAM, 136))
  TRY("tcp", socket(AF_INET6, SOCK_STREAM, 6))
  TRY("udp", socket(AF_INET, SOCK_DGRAM, 17))
  TRY("unix", socket(AF_UNIX, SOCK_SEQPACKET, 0))
  TRY("netlink-route", socket(AF_NETLINK, SOCK_RAW, 0))
  TRY("old-gate", in_child(old_gate))
  TRY("second-numbers", in_child(second_numbers))
  TRY("mount", syscall(SYS_mount, "x", "/mnt", "tmpfs", 0, 0))
  TRY("umount", syscall(SYS_umount2, "/nowhere", 2))
  TRY("open_tree", syscall(428, AT_FDCWD, "/", 1))
  TRY("fsopen", syscall(430, "tmpfs", 0))
  TRY("block-device", mknod("/tmp/block", S_IFBLK | 0666, makedev(7, 0)))
  TRY("kvm-device", mknod("/tmp/kvm", S_IFCHR | 0666, makedev(10, 232)))
  TRY("network-device", mknod("/tmp/tun", S_IFCHR | 0666, makedev(10, 200)))
  TRY("fuse-device", mknod("/tmp/fuse", S_IFCHR | 0666, makedev(10, 229)))
  TRY("pivot_root", syscall(SYS_pivot_root, "/tmp", "/tmp"))
  TRY("mount-groups", syscall(SYS_mount, "x", "/tmp", "cgroup", 0, "pids"))
  TRY("join-namespace", syscall(SYS_setns, open("/proc/self/ns/net", O_RDONLY), 0))
  TRY("open-device", open(argument, O_RDONLY))
  TRY("ptrace", ptrace(PTRACE_SEIZE, atoi(argument), 0, 0))
  TRY("memory", open_of(atoi(argument), "mem", O_RDWR))
  TRY("root", open_of(atoi(argument), "root", O_RDONLY))
  TRY("sysrq", open("/proc/sysrq-trigger", O_WRONLY))
  TRY("modprobe", open("/proc/sys/kernel/modprobe", O_WRONLY))
  TRY("uevent-helper", open("/sys/kernel/uevent_helper", O_WRONLY))
  TRY("subvolume", make_subvolume(0x5000940e))
  TRY("snapshot", make_subvolume(0x50009401))
  TRY("real-time", set_real_time())
  TRY("type-into-terminal", ioctl(0, 0x5412, "x"))
  TRY("type-into-terminal-high-bits", syscall(SYS_ioctl, 0, 0xffffffff00005412ul, "x"))
  TRY("signal-of-nobody", signal_of_nobody())
  TRY("limit-1", limit(1, RLIMIT_CORE, 0))
  TRY("few-descriptors", limit(atoi(argument), RLIMIT_NOFILE, 3))
  TRY("ptrace-1", ptrace(PTRACE_SEIZE, 1, 0, 0))
  TRY("memory-of-1", open("/proc/1/mem", O_RDWR))
  TRY("root-of-1", open("/proc/1/root", O_RDONLY))
  TRY("read-1", read_process_1())
  TRY("descriptor-of-1", any_descriptor_of_1())
  TRY("core-pattern", open("/proc/sys/kernel/core_pattern", O_WRONLY))
  TRY("abstract-socket", abstract())
  errno = EINVAL;
  return -1;
}

int main(int count, char **names) {
  for (int i = 1; i < count; i++) {
    char *value = strchr(names[i], '=');
    if (value != NULL) *value = '\0', argument = value + 1;
    errno = 0;
    long result = attack(names[i]);
    printf("%s %s\n", names[i], result == KILLED ? "SIGSYS" : result < 0 ? strerrorname_np(errno) : "done");
    fflush(stdout);
  }
  return 0;
}
