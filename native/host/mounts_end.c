/* The kernel takes the mounts of a sandbox apart within the exit of the last process that has them, and that takes longer than all the rest
   of its end. A thread that holds them until the process is gone pays for it instead: the end is told at once. */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct held {
  int mounts, pidfd;
};

static void *let_go(void *argument) {
  struct held held = *(struct held *)argument;
  free(argument);
  struct pollfd ended = {.fd = held.pidfd, .events = POLLIN};
  while (poll(&ended, 1, -1) < 0 && errno == EINTR) continue;
  close(held.pidfd);
  close(held.mounts);
  return NULL;
}

static bool start_thread(struct held *held) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, let_go, held) != 0) return false;
  pthread_detach(thread);
  return true;
}

int hold_mounts(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)pid);
  return open(path, O_RDONLY | O_CLOEXEC);
}

void let_mounts_go_after(int mounts, int pidfd) {
  struct held *held = malloc(sizeof *held);
  if (held != NULL) {
    *held = (struct held){.mounts = mounts, .pidfd = pidfd};
    if (start_thread(held)) return;
  }
  free(held);
  close(mounts);
  close(pidfd);
}
