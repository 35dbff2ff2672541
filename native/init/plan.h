/* What the launcher hands to process 1. */
#ifndef PLAN_H
#define PLAN_H

#include "../shared/limits.h"

/* What process 1 has in its hands when the walls stand. */
struct init_plan {
  int listener;             /* listening Unix socket */
  int logs;                 /* O_PATH descriptor of the log folder, -1 if none */
  int run;                  /* O_PATH descriptor of the folder with forwarded sockets, -1 if none */
  int aio;                  /* where io_setup waits for an answer, -1: there is no such call */
  int *work_cgroups;        /* descriptors that move their writer into the group */
  size_t work_cgroup_count;
  bool keep_privileges;     /* false: no_new_privs for commands */
  struct { int resource; uint64_t soft, hard; } rlimits[16];
  size_t rlimit_count;
  struct { uint16_t port; char name[64]; } forwards[16];
  size_t forward_count;
  char direct[64];          /* socket in `run` that programs without a proxy are led to; empty: none */
  bool single_user;         /* user mode: only one uid and gid exist inside */
  struct shown_limits *limits; /* NULL: none are told */
};
void init_main(const struct init_plan *plan) __attribute__((noreturn)); /* the event loop of process 1 */

#endif
