/* Takes as much of one kernel resource as it gets and says `count error`. With a second argument it takes at most that many;
   with `hold` as the third it keeps them until its input ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MIB (1u << 20)
static char name[64];

static long take_process(long at) {
  pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  (void)at;
  return child;
}

static long take_memory(long at) {
  char *block = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return -1;
  memset(block, (int)at + 1, MIB);
  return 0;
}

static long write_block(int fd) {
  static char block[MIB];
  memset(block, rand(), sizeof block);
  /* The last write that fits is a short one; the next one says why. */
  for (size_t done = 0; done < sizeof block;) {
    ssize_t written = write(fd, block + done, sizeof block - done);
    if (written <= 0) return -1;
    done += (size_t)written;
  }
  return 0;
}

static long take_memfd(long at) {
  static int fd;
  if (at == 0) fd = memfd_create("hog", 0);
  return write_block(fd);
}

static long take_deleted_file(long at) {
  static int fd;
  if (at == 0) {
    fd = open("deleted", O_CREAT | O_RDWR, 0600);
    unlink("deleted");
  }
  return write_block(fd) == 0 ? fsync(fd) : -1;
}

static long take_allocation(long at) {
  static int fd;
  if (at == 0) fd = open("allocated", O_CREAT | O_RDWR, 0600);
  return fallocate(fd, 0, (off_t)at * MIB, MIB);
}

static long take_inode(long at) {
  snprintf(name, sizeof name, "inodes/%ld", at);
  if (at == 0) mkdir("inodes", 0755);
  int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (fd >= 0) close(fd);
  return fd;
}

static long take_descriptor(long at) { return (void)at, open("/dev/null", O_RDONLY); }
static long take_terminal(long at) { return (void)at, open("/dev/ptmx", O_RDWR | O_NOCTTY); }
static long take_watcher(long at) { return (void)at, inotify_init(); }

static long take_watch(long at) {
  static int fd;
  if (at == 0) mkdir("watched", 0755);
  if (at % 2000 == 0) fd = inotify_init();
  snprintf(name, sizeof name, "watched/%ld", at % 2000);
  int file = open(name, O_CREAT | O_WRONLY, 0600);
  if (file < 0) return -1;
  close(file);
  return inotify_add_watch(fd, name, IN_MODIFY);
}

static long take_pipe(long at) {
  int ends[2];
  (void)at;
  return pipe(ends) != 0 ? -1 : fcntl(ends[0], F_SETPIPE_SZ, MIB);
}

/* Watches count for their owner, descriptors for the process: one instance takes many, and nests. */
static long take_epoll(long at) {
  static int last = -1;
  int fd = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  if (fd < 0) return -1;
  if (at % 2 == 1 && epoll_ctl(fd, EPOLL_CTL_ADD, last, &event) != 0) return -1;
  return last = fd;
}

static long take_socket(long at) {
  int pair[2];
  if (at % 2 == 0) return socket(AF_INET, SOCK_STREAM, 0);
  return socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
}

/* A port of the loopback that the kernel chooses. */
static long take_port(long at) {
  struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  (void)at;
  return fd < 0 ? -1 : bind(fd, (struct sockaddr *)&any, sizeof any);
}

static long take_queue(long at) {
  snprintf(name, sizeof name, "/q%ld", at);
  struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
  return mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
}

static long take_timer(long at) {
  timer_t timer;
  (void)at;
  return timer_create(CLOCK_MONOTONIC, NULL, &timer);
}

static long take_key(long at) {
  snprintf(name, sizeof name, "k%ld", at);
  return syscall(SYS_add_key, "user", name, "x", 1, -3);
}

static long take_aio(long at) {
  unsigned long context = 0;
  (void)at;
  return syscall(SYS_io_setup, 64, &context);
}

static const struct { const char *name; long (*take)(long); } resources[] = {
  {"processes", take_process}, {"memory", take_memory}, {"memfd", take_memfd}, {"deleted-file", take_deleted_file},
  {"allocation", take_allocation}, {"inodes", take_inode}, {"descriptors", take_descriptor}, {"terminals", take_terminal},
  {"watchers", take_watcher}, {"watches", take_watch}, {"pipes", take_pipe}, {"epolls", take_epoll}, {"sockets", take_socket}, {"ports", take_port}, {"queues", take_queue}, {"timers", take_timer},
  {"keys", take_key}, {"aio", take_aio},
};

int main(int count, char **arguments) {
  long most = count > 2 ? atol(arguments[2]) : 10000000, taken = 0;
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
    if (strcmp(arguments[1], resources[i].name) != 0) continue;
    errno = 0;
    while (taken < most && resources[i].take(taken) >= 0) taken++;
    printf("%ld %s\n", taken, taken == most ? "enough" : strerrorname_np(errno));
    fflush(stdout);
  }
  if (count > 3) while (getchar() != EOF) continue;
  if (strcmp(arguments[1], "processes") == 0) signal(SIGTERM, SIG_IGN), kill(0, SIGTERM);
  return taken < most;
}
