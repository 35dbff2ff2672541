/* The loop of the mover. It begins with nothing but its channel, and ends with the server. */
#include "mover.h"
#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int loop = -1;

int64_t monotonic_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int mover_watch(struct source *source, uint32_t events) {
  if (source->fd < 0 || (source->added && source->events == events)) return 0;
  if (events == 0) {
    /* A registered descriptor reports hang-ups for ever, even with no events asked for. */
    if (source->added) epoll_ctl(loop, EPOLL_CTL_DEL, source->fd, NULL);
    source->added = false;
    return 0;
  }
  struct epoll_event event = {.events = events, .data.ptr = source};
  if (epoll_ctl(loop, source->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, source->fd, &event) != 0) return -1;
  source->added = true;
  source->events = events;
  return 0;
}

void mover_close(struct source *source) {
  if (source->fd < 0) return;
  /* The server has copies: a descriptor that is closed here alone would stay in the loop. */
  mover_watch(source, 0);
  close(source->fd);
  source->fd = -1;
}

static int prepare(void) {
  signal(SIGPIPE, SIG_IGN);
  /* Its descriptors are those of all sandboxes: no other process of the user takes them. */
  prctl(PR_SET_DUMPABLE, 0);
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max < 65536 ? files.rlim_max : 65536;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  const char *channel = getenv("NODE_CHANNEL_FD");
  int fd = channel == NULL ? -1 : atoi(channel);
  if (fd < 3 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return -1;
  loop = epoll_create1(EPOLL_CLOEXEC);
  if (loop < 0) return -1;
  channel_open(fd);
  return 0;
}

static int wait_time(int64_t *due) {
  int64_t now = monotonic_ms();
  if (connections_timed() + arrivals_timed() == 0) return -1;
  if (*due > now + TICK_MS) *due = now + TICK_MS;
  if (now >= *due) {
    connections_tick(now);
    arrivals_tick(now);
    *due = now + TICK_MS;
  }
  return (int)(*due - now);
}

int mover_main(void) {
  int64_t due = INT64_MAX;
  if (prepare() != 0) {
    fprintf(stderr, "cell: no channel to the server: %s\n", strerror(errno));
    return 1;
  }
  for (;;) {
    struct epoll_event event; /* one at a time: a handler may free what a later event points to */
    int count = epoll_wait(loop, &event, 1, wait_time(&due));
    if (count < 0 && errno != EINTR) return 1;
    if (count < 1) continue;
    struct source *source = event.data.ptr;
    source->ready(source, event.events);
  }
}
