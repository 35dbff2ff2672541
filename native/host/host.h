/* The resident helper beside the server: what its parts share. One loop, and a thread or a forked child for what takes long. */
#ifndef HOST_H
#define HOST_H

#include "../shared/answer.h"

#include <sys/types.h>

int host_main(void);

/* Something the loop waits for. `ready` may free the object that holds it. */
struct source {
  int fd;
  void (*ready)(struct source *source, uint32_t events);
};
int loop_add(struct source *source, uint32_t events);
void loop_change(struct source *source, uint32_t events);
void loop_leave(struct source *source);
void loop_remove(struct source *source); /* also closes the descriptor */
void channel_reply(const char *id, struct answer *answer);
void channel_frame(uint8_t kind, const void *payload, size_t length);
void channel_event(struct output *event);

enum { INLINE = 0, FORKED = 1, DIES_WITH_HOST = 2, THREADED = 4 }; /* how a request is carried out */

/* jobs.c: requests that run in a child each */
void job_start(const struct fields *request, const char *id, handler handle, int how);
void jobs_reap(void);
void launch_disk(const struct fields *request, struct answer *answer);
bool launch_is_running(pid_t child);

/* processes.c: process 1 of every sandbox */
void process_watch_launched(const struct fields *reply, const char *sandbox, pid_t launcher);
void process_reaped(pid_t pid, int status);
void process_adopt(const struct fields *request, struct answer *answer);
void process_kill(const struct fields *request, struct answer *answer);

/* threads.c: requests of which a kernel call is all that takes long */
void thread_start(const struct fields *request, const char *id, handler handle);
void thread_close(int fd); /* takes the descriptor: to close it takes long, and happens a moment later */

/* oom.c: whom the kernel ends when the machine runs out of memory */
void protect_from_oom(void);  /* the caller, where that is allowed; a child undoes it first */
int unprotect_from_oom(void);  /* back to what protect_from_oom found; 0 or -1 */

/* cpus.c, run.c */
void change_cpus(const struct fields *request, struct answer *answer);
void run_request(const struct fields *request, struct answer *answer);

/* watch.c */
void watch_request(const struct fields *request, struct answer *answer);
void drain_request(const struct fields *request, struct answer *answer);
void unwatch_request(const struct fields *request, struct answer *answer);

/* watch_machine.c */
void machine_watch(const struct fields *request, struct answer *answer);
void machine_changed(const struct fields *request, struct answer *answer);

#endif
