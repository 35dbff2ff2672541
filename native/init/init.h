/* Process 1 of a sandbox: its loop and its bounds. One thread, one epoll, nothing that blocks. */
#ifndef INIT_H
#define INIT_H

#include "plan.h"

#include <sys/epoll.h>
#include <sys/types.h>

/* Every bound of process 1 stands here. */
#define CONNECTIONS_MAX 256              /* open requests, dialled ones included */
#define REFUSALS_MAX 64                  /* connections past those that are told so, and not just cut off */
#define COMMANDS_MAX 512                 /* running, or ended with a pipe still held open */
#define PUMP_MAX (256u << 10)            /* bytes moved at once between two sockets */
#define FORWARDS_MAX 256                 /* connections from inside to forwarded ports */
#define NAMES_MAX 1024                   /* names that have an address; the oldest makes room */
#define NAME_ASKS_MAX 64                 /* names that the server is asked for at once; further datagrams wait */
#define NAME_STREAMS_MAX 16              /* TCP connections to the resolver */
#define DIRECT_LISTENERS_MAX 1024        /* addresses and ports of names that are listened on */
#define MEMORY_TOLD_MS 1000
#define FILE_CHILDREN_MAX 128            /* file operations and watches at once */
#define REAPED_AT_ONCE 256               /* a fork bomb must not keep the loop from its other work */
#define SEND_MAX (1u << 20)              /* bytes waiting for a client before its connection is given up */
#define LISTENER_MAX (256u << 10)        /* bytes waiting for an attached listener before it gets a GAP */
#define ARGUMENTS_SHOWN 1024             /* bytes of a command's arguments that `list` shows */
#define HANDED_READ_MAX (256u << 10)    /* bytes of output in one frame to a reader that took it over */
#define HANDED_PIPE (256 << 10)           /* bytes that a command may be ahead of such a reader in its pipe */
#define STAGED_LOG_SMALLEST (2u << 20)  /* a log that holds less is written at once */
#define STAGED_MS 200                    /* how much later than its output a staged log may be written */
#define LOG_SMALLEST (16u << 10)
#define LOG_LARGEST (1u << 30)
#define DESCRIPTORS_WANTED 8192
#define KILL_AFTER_MS 2000               /* from SIGTERM to SIGKILL after a timeout */
#define LINGER_MS 200                    /* how long EXIT waits for a pipe that a background child holds */
#define BRIEF_MS 3                       /* how long a brief command is not told of: most that are asked for in a row end sooner */
#define GRACE_DEFAULT_MS 2000
#define GRACE_LARGEST_MS 600000
#define FILE_SECONDS_MAX 600

#define container(pointer, type, member) ((type *)(void *)((char *)(pointer) - offsetof(type, member)))

/* A descriptor in the loop. It is the first member of what owns it, so that retire() can free the owner. */
struct source {
  int fd;
  bool added;
  uint32_t events;
  void (*ready)(struct source *source, uint32_t events);
  struct source *retired;
};

extern const struct init_plan *plan;

/* init.c */
int64_t now_ms(void);
int source_watch(struct source *source, uint32_t events); /* 0 keeps it out of the loop */
int source_idle(struct source *source);                   /* in the loop for hang-ups alone */
void source_close(struct source *source);
void retire(struct source *first_member);                 /* freed when the events at hand are handled */
void begin_stop(int64_t grace_ms);
bool stopping(void);
void restore_limits(void);                                /* in a child: the descriptor limit process 1 began with */
void count_file_child(pid_t pid);
bool file_child_allowed(void);
pid_t fork_child(void);
int accept_connection(int from, bool *refused);           /* refused: close what it gives, then restore_spare() */
void restore_spare(void);

/* aio.c: asynchronous requests, which the machine counts for all */
void aio_listen(void);

#endif
