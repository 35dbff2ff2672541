/* The helper and the server go on when the machine runs out of memory; what they start is no better than anything else. */
#include "host.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Root gets the first. An ordinary user gets the second, which takes back a higher value that its caller set. */
static const char *const wanted[] = {"-900", "0"};

static char before[16]; /* what the server was started with; empty: nothing was changed */

static int write_score(const char *score) {
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t count = write(fd, score, strlen(score));
  close(fd);
  return count > 0 ? 0 : -1;
}

void protect_from_oom(void) {
  int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t count = read(fd, before, sizeof before - 1);
  close(fd);
  for (size_t at = 0; count > 0 && at < sizeof wanted / sizeof *wanted; at++) {
    if (atoi(wanted[at]) < atoi(before) && write_score(wanted[at]) == 0) return;
  }
  before[0] = '\0';
}

/* With the privilege it was lowered with, if any: the kernel then takes this as the least the child may ever set. */
int unprotect_from_oom(void) { return before[0] == '\0' ? 0 : write_score(before); }
