/* Process 1 from its birth in the new namespaces to its event loop. It never execs. */
#include "steps.h"
#include "../init/network/route.h"
#include "../init/walls/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

static void __attribute__((noreturn)) give_up(struct launch *launch) {
  struct report report = {.error = launch->error, .message = launch->message};
  memcpy(report.step, launch->step, sizeof report.step);
  write_all(launch->channel, &report, sizeof report);
  _exit(1);
}

/* A network namespace takes the kernel longer than everything else, so it is made here, while the launcher mounts. */
static int leave_host(struct launch *launch) {
  int flags = CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | (launch->root_mode ? 0 : CLONE_NEWNS);
  if (unshare(flags) != 0) return failed(launch, "namespaces");
  return launch->root_mode ? 0 : leave_cgroups(launch);
}

static int raise_loopback(struct launch *launch) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
  if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) != 0) return failed(launch, "loopback");
  close(fd);
  return 0;
}

/* A sandbox has no device but loopback, which has no congestion. The machine's own way may pace what is sent (bbr does): every
   packet inside would then wait for a timer, which costs more than to move it. Refused, programs inside are slower. */
static void send_unpaced(void) {
  static const char unpaced[] = "reno";
  int fd = open("/proc/sys/net/ipv4/tcp_congestion_control", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t written = write(fd, unpaced, strlen(unpaced));
  (void)written;
  close(fd);
}

static int set_host_name(struct launch *launch) {
  if (launch->hostname != NULL && sethostname(launch->hostname, strlen(launch->hostname)) != 0) return failed(launch, "hostname");
  return 0;
}

static int become_root_inside(struct launch *launch) {
  if (!launch->root_mode) return 0;
  if (setgroups(0, NULL) != 0 || setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0) return failed(launch, "become root inside");
  return 0;
}

/* The mounts of user mode cover what must stay covered, and are locked together. A recursive bind of the new root is a mount that is not,
   so pivot_root takes it. The launcher's mounts come as a tree of their own. */
static int take_root(struct launch *launch, int mounts) {
  if (launch->root_mode) {
    if (call_move_mount(mounts, AT_FDCWD, STACK, 0) != 0) return failed(launch, "take root");
    close(mounts);
  } else {
    if (chdir(STACK) != 0 || call_mount(".", STACK, NULL, MS_BIND | MS_REC, NULL) != 0) return failed(launch, "bind root");
  }
  return chdir(STACK) == 0 ? 0 : failed(launch, "enter root");
}

/* Both leave the launcher's mounts before there is a root: here nothing covers what lies on the way to a source. */
static int own_mounts(struct launch *launch) {
  if (launch->root_mode && unshare(CLONE_NEWNS) != 0) return failed(launch, "mount namespace");
  if (call_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return failed(launch, "private mounts");
  return 0;
}

static int mount_as_user(struct launch *launch) {
  if (launch->root_mode) return 0;
  if (open_sources(launch) != 0) return -1;
  return make_mounts(launch);
}

static int by_number(const void *left, const void *right) { return *(const int *)left - *(const int *)right; }

/* Everything else would be a door to the host. */
static int close_others(struct launch *launch) {
  const struct init_plan *plan = &launch->plan;
  int keep[CGROUPS_MOST + 16] = {0, 1, 2, launch->channel, plan->listener};
  size_t count = 5;
  if (plan->logs >= 0) keep[count++] = plan->logs;
  if (plan->run >= 0) keep[count++] = plan->run;
  for (size_t i = 0; i < plan->work_cgroup_count; i++) keep[count++] = plan->work_cgroups[i];
  const int limits[] = {plan->limits->meminfo, plan->limits->online, plan->limits->files, plan->limits->machine, plan->limits->usage, plan->limits->statistics};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
    if (limits[i] >= 0) keep[count++] = limits[i];
  for (int standard = 0; standard < 3; standard++)
    if (dup2(launch->null, standard) < 0) return failed(launch, "standard descriptors");
  qsort(keep, count, sizeof *keep, by_number);
  for (size_t i = 1; i <= count; i++) {
    unsigned from = (unsigned)keep[i - 1] + 1, to = i == count ? ~0u : (unsigned)keep[i] - 1;
    if (from <= to && syscall(SYS_close_range, from, to, 0) != 0) return failed(launch, "close descriptors");
  }
  return 0;
}

static int settle(struct launch *launch) {
  /* The session keyring of the user who started the server stays outside. */
  syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setsid();
  umask(022);
  prctl(PR_SET_NAME, "cell");
  struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  /* Without this, ptrace, /proc/1/mem and pidfd_getfd reach process 1 from inside. */
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return failed(launch, "dumpable");
  return close_others(launch);
}

/* The filter comes first: without no_new_privs it takes a capability that goes with the others. */
static int put_walls_up(struct launch *launch) {
  if (install_seccomp(&launch->plan.aio) != 0) return failed(launch, "seccomp");
  if (drop_capabilities() != 0) return failed(launch, "capabilities");
  return 0;
}

/* As root the mounts without a disk are made while the disk is. An ordinary user makes the others, too, and their sources may lie where
   these would wait. */
static int make_root(struct launch *launch) {
  int mounts;
  if (launch->root_mode && make_interior_ahead(launch) != 0) return -1;
  if (take_disk(launch, &mounts) != 0 || set_host_name(launch) != 0 || mount_as_user(launch) != 0 || take_root(launch, mounts) != 0) return -1;
  return launch->root_mode ? place_interior(launch) : make_interior(launch, ".");
}

void become_init(struct launch *launch) {
  signal(SIGPIPE, SIG_IGN);
  if (leave_host(launch) != 0 || raise_loopback(launch) != 0) give_up(launch);
  send_unpaced();
  if (launch->plan.direct[0] != '\0') route_names();
  if (await_mapped(launch) != 0 || become_root_inside(launch) != 0 || own_mounts(launch) != 0) give_up(launch);
  if (make_root(launch) != 0 || enter_root(launch) != 0 || close_system(launch) != 0) give_up(launch);
  if (settle(launch) != 0 || put_walls_up(launch) != 0) give_up(launch);
  struct report ready = {0};
  signal(SIGPIPE, SIG_IGN);
  if (write_all(launch->channel, &ready, sizeof ready) != 0) _exit(1);
  close(launch->channel);
  signal(SIGPIPE, SIG_DFL);
  init_main(&launch->plan);
}
