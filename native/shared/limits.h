/* What programs inside are told of the limits. */
#ifndef LIMITS_H
#define LIMITS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shown_limits {
  uint64_t memory;          /* in bytes; 0: not told */
  uint32_t cpus;            /* how many processors; 0: not told */
  uint32_t first;           /* which of those allowed the chosen ones begin with */
  cpu_set_t allowed, chosen;
  int meminfo, online;      /* the files over those of /proc and /sys, to write to; -1: not told */
  int files;                /* the mount they are written through; -1: none */
  int machine;              /* the machine's /proc/meminfo */
  int usage, statistics;    /* of the group that holds the memory; -1: none */
};
void cpus_text(const cpu_set_t *set, char *text, size_t size); /* as the kernel writes lists: 0-2,5 */
bool cpus_parse(const char *text, cpu_set_t *set);
void limits_begin(struct shown_limits *limits, uint32_t range); /* the id ranges of sandboxes differ; so do the processors they get */
void limits_choose(struct shown_limits *limits);               /* after `cpus` has changed */
int limits_tell_memory(const struct shown_limits *limits);     /* 0 or -1 */
int limits_tell_cpus(const struct shown_limits *limits);

#endif
