/* For tests alone: process 1 in throw-away namespaces of its own, on the file system as it is.
   testinit <socket> <logs> <run> [forward:<port>:<name>] [direct:<name>] [cgroup:<cgroup.procs>] [descriptors:<n>] [keep] */
#include "../init/network/route.h"
#include "../init/plan.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct init_plan the_plan;
static int cgroups[8];

static int listen_at(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 512) != 0) return -1;
  return fd;
}

static void take_option(char *option) {
  if (strcmp(option, "keep") == 0) the_plan.keep_privileges = true;
  if (strncmp(option, "descriptors:", 12) == 0) {
    rlim_t most = (rlim_t)strtol(option + 12, NULL, 10);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){most, most});
  }
  if (strncmp(option, "cgroup:", 7) == 0) cgroups[the_plan.work_cgroup_count++] = open(option + 7, O_WRONLY | O_CLOEXEC);
  if (strncmp(option, "direct:", 7) == 0) snprintf(the_plan.direct, sizeof the_plan.direct, "%s", option + 7);
  if (strncmp(option, "forward:", 8) == 0) {
    char *name;
    the_plan.forwards[the_plan.forward_count].port = (uint16_t)strtol(option + 8, &name, 10);
    snprintf(the_plan.forwards[the_plan.forward_count++].name, 64, "%s", name + 1);
  }
}

static void loopback_up(void) {
  struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ioctl(fd, SIOCSIFFLAGS, &request);
  close(fd);
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  the_plan.listener = listen_at(argv[1]);
  the_plan.logs = open(argv[2], O_PATH | O_DIRECTORY | O_CLOEXEC);
  the_plan.run = open(argv[3], O_PATH | O_DIRECTORY | O_CLOEXEC);
  the_plan.aio = -1;
  the_plan.work_cgroups = cgroups;
  for (int at = 4; at < argc; at++) take_option(argv[at]);
  if (the_plan.listener < 0 || the_plan.logs < 0 || the_plan.run < 0) return 3;
  if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET) != 0) return 4;
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    mount("proc", "/proc", "proc", 0, NULL);
    loopback_up();
    if (the_plan.direct[0] != '\0') route_names();
    if (chdir("/") != 0) return 5;
    init_main(&the_plan);
  }
  close(the_plan.listener);
  printf("%d\n", (int)pid);
  fflush(stdout);
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
