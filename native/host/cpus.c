/* Gives the processes of a sandbox other processors, when its limit changes while they run. */
#include "host.h"
#include "../shared/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS_MOST 100

/* The threads of a group; in the old kind of group the file has another name. */
static FILE *open_threads(const char *group) {
  char path[4096];
  for (int old = 0; old < 2; old++) {
    if (snprintf(path, sizeof path, "%s/%s", group, old ? "tasks" : "cgroup.threads") >= (int)sizeof path) return NULL;
    FILE *threads = fopen(path, "re");
    if (threads != NULL || errno != ENOENT) return threads;
  }
  return NULL;
}

/* A thread that chose processors for itself keeps them. Answers how many threads were changed, -1: the group can't be read. */
static int change_threads(const char *group, const cpu_set_t *from, const cpu_set_t *to) {
  int thread, changed = 0;
  FILE *threads = open_threads(group);
  if (threads == NULL) return -1;
  while (fscanf(threads, "%d", &thread) == 1) {
    cpu_set_t has;
    if (thread <= 0 || sched_getaffinity(thread, sizeof has, &has) != 0 || !CPU_EQUAL(&has, from)) continue;
    if (sched_setaffinity(thread, sizeof *to, to) == 0) changed++;
  }
  fclose(threads);
  return changed;
}

void change_cpus(const struct fields *request, struct answer *answer) {
  const char *group = required(request, "cgroup", answer), *from_text = required(request, "from", answer), *to_text = required(request, "to", answer);
  cpu_set_t from, to;
  if (group == NULL || from_text == NULL || to_text == NULL) return;
  if (!cpus_parse(from_text, &from) || !cpus_parse(to_text, &to)) {
    refuse(answer, "bad-request", EINVAL, "request", "from or to is no list of processors");
    return;
  }
  if (CPU_EQUAL(&from, &to)) return;
  /* What is forked meanwhile may have the old ones, so it is looked again until there is nothing left to do. */
  for (int round = 0; round < ROUNDS_MOST; round++) {
    int changed = change_threads(group, &from, &to);
    if (changed < 0) refuse_errno(answer, "cpus", group);
    if (changed <= 0) return;
  }
}
