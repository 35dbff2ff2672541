/* What every part of the cell shares: framing, fields, small helpers. */
#ifndef CELL_H
#define CELL_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifndef PROTOCOL_VERSION /* tests build a cell of another version */
#define PROTOCOL_VERSION 1
#endif
#define FRAME_MAX (1u << 20)
#define CHUNK_MAX (64u << 10)
#define NAMES_NETWORK 0xc6120000u /* 198.18.0.0/15: addresses that stand for names */
#define NAMES_BITS 15
#define DIRECT_PORTS_FILE "ports"
#define PART '\x1f'

enum kind {
  REQUEST = 1, REPLY = 2, EVENT = 3, ERROR = 4, END = 5, ENTRY = 6,
  STDOUT = 16, STDERR = 17, STDIN = 18, STDIN_END = 19, RESIZE = 20, SIGNAL = 21, EXIT = 22, GAP = 23, DATA = 24,
};

struct header {
  uint32_t length;
  uint8_t kind;
  uint8_t reserved[3];
};

/* A received payload of fields; `data` is NUL-terminated after every field. */
struct fields {
  const char *data;
  size_t length;
};

/* A payload under construction. */
struct output {
  char *data;
  size_t length, capacity;
};

/* frames.c */
bool fields_valid(const struct fields *fields);
const char *field(const struct fields *fields, const char *key);                       /* first value or NULL */
const char *field_next(const struct fields *fields, const char *key, const char *after); /* next value of a repeated key; NULL starts */
size_t field_count(const struct fields *fields, const char *key);
bool field_number(const struct fields *fields, const char *key, int64_t *value);       /* false: absent or not a decimal number */
bool field_flag(const struct fields *fields, const char *key);                         /* true only for "1" */
size_t split_parts(char *value, char **parts, size_t most);                            /* splits at PART in place */
void put(struct output *output, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));
void put_bytes(struct output *output, const void *data, size_t length);
void output_free(struct output *output);
int write_all(int fd, const void *data, size_t length);                                /* blocking; 0 or -1 */
int read_all(int fd, void *data, size_t length);                                       /* blocking; 0, or -1 with errno 0 at end of file */
int send_frame(int fd, uint8_t kind, const void *payload, size_t length);              /* blocking */
int send_output(int fd, uint8_t kind, struct output *output);                          /* blocking; frees output */
int send_error(int fd, const char *id, const char *code, int error, const char *step, const char *message);
/* Blocking read of one frame into a malloc'd, NUL-terminated buffer. Returns 0, or -1 (end, bad frame, error). */
int receive_frame(int fd, struct header *header, char **payload);
const char *code_of_errno(int error);

/* oom.c: whom the kernel ends when the machine runs out of memory */
void protect_from_oom(void);  /* the caller, where that is allowed; a child undoes it first */
int unprotect_from_oom(void);  /* back to what protect_from_oom found; 0 or -1 */

/* One main per life. */
int host_main(void);                                       /* host.c */
int probe_main(void);                                      /* probe.c */
struct launch;                                             /* launch.c: carries out one `launch` request in a forked child */
int launch_main(const struct fields *request, int result_fd); /* runs in the forked child; writes REPLY or ERROR without `id=` to result_fd; returns exit status */

/* limits.c: what programs inside are told of the limits */
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
void limits_begin(struct shown_limits *limits, uint32_t seat); /* seats of sandboxes differ; so do the processors they get */
void limits_choose(struct shown_limits *limits);               /* after `cpus` has changed */
int limits_tell_memory(const struct shown_limits *limits);     /* 0 or -1 */
int limits_tell_cpus(const struct shown_limits *limits);

/* What process 1 has in its hands when the walls stand. init.c */
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

/* route.c */
void route_names(void); /* 198.18.0.0/15 is loopback's own from now on */

/* guard.c: what a command may do. Called in the child, after the uid is set, right before exec. 0 or -1. */
int drop_capabilities(void);       /* bounding, permitted, effective, inheritable, ambient to the container's set */
int install_seccomp(int *asked);   /* where io_setup waits for an answer, -1: there is no such call; NULL: nor should there be */

#endif
