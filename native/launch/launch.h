/* Makes a sandbox: walls first, then process 1. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include "../shared/frames.h"

int launch_main(const struct fields *request, int result_fd); /* runs in the forked child; writes REPLY or ERROR without `id=` to result_fd; returns exit status */
int probe_main(void); /* probe.c */

#endif
