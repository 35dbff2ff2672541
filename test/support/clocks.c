/* What one sandbox could do to the machine's clock, timers and random numbers. Prints `name result` for each name:
   the name of the error or "done"; `storm=SECONDS` says how many timers fired, random bytes came and times were read. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define TIMERS 200
#define ALARM_CLOCK 8

static long set_clock(void) {
  struct timespec later;
  clock_gettime(CLOCK_REALTIME, &later);
  later.tv_sec += 3600;
  return syscall(SYS_clock_settime, CLOCK_REALTIME, &later);
}

static long slew_clock(void) {
  struct timex change = {.modes = ADJ_OFFSET_SINGLESHOT, .offset = 100000};
  return adjtimex(&change);
}

/* Nothing is set, but the right to do so is asked for. */
static long set_nothing(void) { return syscall(SYS_settimeofday, NULL, NULL); }

static long wake_machine(void) { return timerfd_create(ALARM_CLOCK, 0); }

/* No bits are credited, but the right to do so is asked for. */
static long credit_entropy(void) {
  int bits = 0, fd = open("/dev/urandom", O_RDONLY);
  return fd < 0 ? -1 : ioctl(fd, RNDADDTOENTCNT, &bits);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint64_t read_timers(int epoll) {
  struct epoll_event ready[TIMERS];
  uint64_t fired = 0, count;
  int found = epoll_wait(epoll, ready, TIMERS, 0);
  for (int i = 0; i < found; i++)
    if (read(ready[i].data.fd, &count, sizeof count) == sizeof count) fired += count;
  return fired;
}

/* Timers that fire as often as the kernel lets them: half are read, half send a signal that is ignored. */
static int start_timers(void) {
  struct itimerspec often = {{0, 1}, {0, 1}}, soon = {{0, 20000}, {0, 20000}};
  int epoll = epoll_create1(0);
  signal(SIGUSR1, SIG_IGN);
  for (int i = 0; i < TIMERS; i++) {
    struct sigevent ignored = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &ignored, &timer) == 0) timer_settime(timer, 0, &often, NULL);
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    timerfd_settime(fd, 0, &soon, NULL);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
  }
  return epoll;
}

static void storm(double seconds) {
  static char bytes[65536];
  uint64_t fired = 0, random = 0, reads = 0;
  int epoll = start_timers();
  for (double end = now() + seconds; now() < end;) {
    fired += read_timers(epoll);
    random += (uint64_t)getrandom(bytes, sizeof bytes, 0);
    for (int i = 0; i < 1000; i++, reads++) {
      struct timespec time;
      syscall(SYS_clock_gettime, CLOCK_REALTIME, &time);
    }
  }
  printf("storm %llu %llu %llu\n", (unsigned long long)fired, (unsigned long long)random, (unsigned long long)reads);
}

int main(int count, char **names) {
  static const struct { const char *name; long (*attempt)(void); } attempts[] = {
    {"set-clock", set_clock}, {"slew-clock", slew_clock}, {"set-nothing", set_nothing},
    {"wake-machine", wake_machine}, {"credit-entropy", credit_entropy},
  };
  for (int i = 1; i < count; i++) {
    if (strncmp(names[i], "storm=", 6) == 0) storm(atof(names[i] + 6));
    for (size_t at = 0; at < sizeof attempts / sizeof *attempts; at++) {
      if (strcmp(names[i], attempts[at].name) != 0) continue;
      errno = 0;
      long result = attempts[at].attempt();
      printf("%s %s\n", names[i], result < 0 ? strerrorname_np(errno) : "done");
    }
    fflush(stdout);
  }
  return 0;
}
