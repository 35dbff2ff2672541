/* What programs inside are told of the sandbox's limits, where they look by themselves: the processors a command may use,
   and two files of process 1 that lie over /proc/meminfo and /sys/devices/system/cpu/online. They are no walls: the groups
   hold the limits, whatever a program believes. */
#include "limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MOST 4096
#define KIBIBYTE 1024
#define WIDTH 24 /* where numbers end in the kernel's own file */

void cpus_text(const cpu_set_t *set, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (int first = 0; first < CPU_SETSIZE; first++) {
    if (!CPU_ISSET(first, set)) continue;
    int last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set)) last++;
    int length = snprintf(text + used, size - used, last == first ? "%s%d" : "%s%d-%d", used == 0 ? "" : ",", first, last);
    if (length < 0 || (size_t)length >= size - used) return;
    used += (size_t)length;
    first = last;
  }
}

bool cpus_parse(const char *text, cpu_set_t *set) {
  CPU_ZERO(set);
  for (char *end; ; text = end + 1) {
    long first = strtol(text, &end, 10), last = first;
    if (end == text) return false;
    if (*end == '-') {
      text = end + 1;
      last = strtol(text, &end, 10);
      if (end == text) return false;
    }
    if (first < 0 || last < first || last >= CPU_SETSIZE) return false;
    for (long cpu = first; cpu <= last; cpu++) CPU_SET((int)cpu, set);
    if (*end == '\0') return true;
    if (*end != ',') return false;
  }
}

/* So many of the processors that process 1 has, beginning at a place that differs from sandbox to sandbox: with equal limits
   all processors get equally many sandboxes. The place stays, so that a raised limit adds to what there was. */
void limits_choose(struct shown_limits *limits) {
  uint32_t count = (uint32_t)CPU_COUNT(&limits->allowed), at = 0;
  limits->chosen = limits->allowed;
  if (limits->cpus == 0 || limits->cpus >= count) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &limits->allowed)) continue;
    if ((at++ + count - limits->first % count) % count >= limits->cpus) CPU_CLR(cpu, &limits->chosen);
  }
}

void limits_begin(struct shown_limits *limits, uint32_t range) {
  if (sched_getaffinity(0, sizeof limits->allowed, &limits->allowed) != 0) CPU_ZERO(&limits->allowed); /* more than a set holds */
  uint32_t count = (uint32_t)CPU_COUNT(&limits->allowed);
  if (count > 0) limits->first = (uint32_t)((uint64_t)range * (limits->cpus == 0 || limits->cpus >= count ? 1 : limits->cpus) % count);
  limits_choose(limits);
}

static void load(int fd, char *text, size_t size) {
  ssize_t length = fd < 0 ? 0 : pread(fd, text, size - 1, 0);
  text[length > 0 ? length : 0] = '\0';
}

/* The number behind `key` at the beginning of a line; 0 where there is none. */
static uint64_t number_of(const char *text, const char *key) {
  size_t length = strlen(key);
  for (; text != NULL && *text != '\0'; text = (text = strchr(text, '\n')) == NULL ? NULL : text + 1)
    if (strncmp(text, key, length) == 0) return strtoull(text + length, NULL, 10);
  return 0;
}

static uint64_t least(uint64_t left, uint64_t right) { return left < right ? left : right; }

enum { TOTAL, FREE, AVAILABLE, CACHED, ACTIVE, INACTIVE, ACTIVE_ANON, INACTIVE_ANON, ACTIVE_FILE, INACTIVE_FILE, ANON, SHARED, SLAB, VALUES };

/* In KiB, as the file says them. What the machine itself has left bounds what the sandbox can have. */
static void measure(const struct shown_limits *limits, const char *machine, uint64_t values[VALUES]) {
  char used[64], statistics[TEXT_MOST];
  load(limits->usage, used, sizeof used);
  load(limits->statistics, statistics, sizeof statistics);
  uint64_t usage = strtoull(used, NULL, 10) / KIBIBYTE;
  values[TOTAL] = least(limits->memory / KIBIBYTE, number_of(machine, "MemTotal:"));
  values[ACTIVE_ANON] = number_of(statistics, "active_anon ") / KIBIBYTE;
  values[INACTIVE_ANON] = number_of(statistics, "inactive_anon ") / KIBIBYTE;
  values[ACTIVE_FILE] = number_of(statistics, "active_file ") / KIBIBYTE;
  values[INACTIVE_FILE] = number_of(statistics, "inactive_file ") / KIBIBYTE;
  values[SHARED] = number_of(statistics, "shmem ") / KIBIBYTE;
  values[SLAB] = number_of(statistics, "slab_reclaimable ") / KIBIBYTE;
  values[ANON] = (number_of(statistics, "anon ") + number_of(statistics, "rss ")) / KIBIBYTE; /* the new kind of group has the one, the old the other */
  values[ACTIVE] = values[ACTIVE_ANON] + values[ACTIVE_FILE];
  values[INACTIVE] = values[INACTIVE_ANON] + values[INACTIVE_FILE];
  values[CACHED] = values[ACTIVE_FILE] + values[INACTIVE_FILE] + values[SHARED];
  uint64_t free = values[TOTAL] - least(usage, values[TOTAL]);
  uint64_t reclaimable = values[ACTIVE_FILE] + values[INACTIVE_FILE] + values[SLAB];
  values[AVAILABLE] = least(least(free + reclaimable, values[TOTAL]), number_of(machine, "MemAvailable:"));
  values[FREE] = least(free, values[AVAILABLE]);
}

static uint64_t value_of(const char *key, size_t length, uint64_t machine, const uint64_t values[VALUES]) {
  static const struct { const char *key; int value; } told[] = {
    {"MemTotal", TOTAL}, {"MemFree", FREE}, {"MemAvailable", AVAILABLE}, {"Cached", CACHED}, {"Active", ACTIVE}, {"Inactive", INACTIVE},
    {"Active(anon)", ACTIVE_ANON}, {"Inactive(anon)", INACTIVE_ANON}, {"Active(file)", ACTIVE_FILE}, {"Inactive(file)", INACTIVE_FILE},
    {"AnonPages", ANON}, {"Shmem", SHARED}, {"KReclaimable", SLAB}, {"SReclaimable", SLAB}, {"Slab", SLAB}, {"CommitLimit", TOTAL},
  };
  for (size_t at = 0; at < sizeof told / sizeof *told; at++)
    if (strlen(told[at].key) == length && memcmp(told[at].key, key, length) == 0) return values[told[at].value];
  /* Sizes of pages and addresses are the kernel's; every other number would be the machine's use. */
  return strncmp(key, "Huge", 4) == 0 || strncmp(key, "VmallocTotal", 12) == 0 ? machine : 0;
}

/* The lines of the machine's file in their order, with the sandbox's numbers. They are of one width, so that a program that
   reads while they are written finds whole lines. */
static size_t compose(const struct shown_limits *limits, char *text) {
  char machine[TEXT_MOST];
  uint64_t values[VALUES];
  size_t used = 0;
  load(limits->machine, machine, sizeof machine);
  measure(limits, machine, values);
  for (char *line = machine, *end; *line != '\0' && (end = strchr(line, '\n')) != NULL; line = end + 1) {
    char *colon = memchr(line, ':', (size_t)(end - line));
    if (colon == NULL) continue;
    const char *unit = memcmp(end - 3, " kB", 3) == 0 ? " kB" : "";
    uint64_t value = value_of(line, (size_t)(colon - line), strtoull(colon + 1, NULL, 10), values);
    int name = (int)(colon - line) + 1;
    int length = snprintf(text + used, TEXT_MOST - used, "%.*s%*llu%s\n", name, line, WIDTH - name, (unsigned long long)value, unit);
    if (length < 0 || (size_t)length >= TEXT_MOST - used) return 0;
    used += (size_t)length;
  }
  return used;
}

static int replace(int fd, const char *text, size_t length) {
  if (pwrite(fd, text, length, 0) != (ssize_t)length) return -1;
  return ftruncate(fd, (off_t)length);
}

int limits_tell_memory(const struct shown_limits *limits) {
  char text[TEXT_MOST];
  size_t length = limits->memory == 0 ? 0 : compose(limits, text);
  return length == 0 ? 0 : replace(limits->meminfo, text, length);
}

int limits_tell_cpus(const struct shown_limits *limits) {
  char text[TEXT_MOST];
  cpus_text(&limits->chosen, text, sizeof text - 1);
  size_t length = strlen(text);
  if (length == 0) return 0;
  text[length++] = '\n';
  return replace(limits->online, text, length);
}
