/* Process 1 of a sandbox: what its parts share. One thread, one epoll, nothing that blocks. */
#ifndef INIT_H
#define INIT_H

#include "cell.h"

#include <sys/epoll.h>
#include <sys/resource.h>

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
#define LOG_SMALLEST (16u << 10)
#define LOG_LARGEST (1u << 30)
#define DESCRIPTORS_WANTED 8192
#define KILL_AFTER_MS 2000               /* from SIGTERM to SIGKILL after a timeout */
#define LINGER_MS 200                    /* how long EXIT waits for a pipe that a background child holds */
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

/* A bounded queue of bytes. */
struct queue {
  char *data;
  size_t start, length, capacity;
};

/* Fields of a reply from process 1: fixed room, so that building one cannot fail. What does not fit is left out. */
struct packet {
  size_t length;
  char data[4096];
};

struct log {
  int folder, fd;
  char name[80];
  uint64_t half, size;                   /* bytes of a file: bound and present */
  uint64_t total, current, previous;     /* bytes of output: ever, in this file, in the one before */
  uint64_t gap;                          /* bytes lost since the last frame that could be written */
  bool wanted;
  size_t exit_length;
  char exit[512];
};

struct command;

struct connection {
  struct source source;
  struct connection *next, *previous;    /* all connections */
  struct connection *next_listener;      /* of the same command */
  struct command *command;
  struct queue in, out;
  uint64_t gap;
  bool requested;                        /* the REQUEST has been taken */
  bool foreground, input;                /* lossless; may send STDIN */
  bool ended, hung, closing;             /* peer sends no more; peer is gone; nothing more to tell it */
  bool said;                             /* closing, and the peer has been given the end */
};

struct command {
  struct source out, err, in, status;
  struct command *next, *previous;
  struct connection *foreground, *listeners;
  struct log log;
  struct queue input;
  char id[65], user[65];
  char arguments[ARGUMENTS_SHOWN];
  size_t arguments_length;
  pid_t pid;
  pid_t helper;                          /* the child made ahead that makes this one, until it ends or the pid is known */
  bool untold;                           /* the pid is not known yet */
  int late_signal;                       /* sent before it was */
  bool tty, started, exited, finished, timed_out, input_ending;
  int wait_status;
  struct rusage usage;
  uint64_t bytes, drained, drain_until;  /* output so far; after the end: seen, and what was in the pipes then */
  int64_t started_ms, started_at, ended_at;
  int64_t timeout_at, kill_at, finish_at; /* monotonic milliseconds, 0: none */
};

struct exec_request {
  const char *id, *user, *cwd;
  bool tty, input;
  uint16_t rows, cols;
  int64_t timeout_ms, log_bytes;
};

struct identity {
  uid_t uid;
  gid_t gid;
  gid_t groups[64];
  size_t group_count;
  char name[66], home[256], shell[256]; /* of the account; empty without one */
};

/* What a command's child, or a file child, tells process 1 when it cannot go on. */
struct failure {
  int error;
  char code[20], step[12];
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

/* queue.c */
bool queue_append(struct queue *queue, const void *data, size_t length, size_t most);
ssize_t queue_write(struct queue *queue, int fd);         /* bytes left, or -1 when the other side is gone */
void queue_free(struct queue *queue);

/* channel.c: connections */
void packet_put(struct packet *packet, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));
void packet_bytes(struct packet *packet, const char *data, size_t length);
struct connection *connection_open(int fd);
void connection_ready(struct source *source, uint32_t events);
void connection_receive(struct connection *connection);   /* takes the complete frames of its queue */
void connection_resume(struct connection *connection);    /* what blocked its next frame is over */
void connection_update(struct connection *connection);
void connection_send(struct connection *connection, uint8_t kind, const void *payload, size_t length);
void connection_send_framed(struct connection *connection, const void *frame, size_t length);
void connection_fail(struct connection *connection, const char *code, int error, const char *step, const char *message);
void connection_finish(struct connection *connection);    /* tells the end when everything is sent */
void connection_close(struct connection *connection);
int connection_release(struct connection *connection, struct queue *rest); /* gives up the descriptor; -1 unless all is sent */
size_t connection_count(void);

/* request.c: validates, then acts through the functions below */
void request_handle(struct connection *connection, const struct fields *request);
bool request_frame(struct connection *connection, uint8_t kind, const char *payload, size_t length);
bool request_blocked(const struct connection *connection, uint8_t kind);
const char *exec_parse(const struct fields *request, struct exec_request *exec); /* NULL, or what is wrong */

/* exec.c */
void command_start(struct connection *connection, const struct fields *request, const struct exec_request *exec);
void command_attach(struct connection *connection, const char *id, bool input);
void command_detach(struct connection *connection);
void command_list(struct connection *connection);
bool command_kill(const char *id, int signal);
void command_signal(struct command *command, int signal);
void command_resize(struct command *command, uint16_t rows, uint16_t cols);
void command_free(struct command *command);
bool command_was(struct command *command, pid_t pid, int status); /* whether the child that ended so was this command */
void command_reaped(struct command *command, int status, const struct rusage *usage);
size_t command_count(void);
struct command *command_first(void);

/* input.c: from its clients to a command's standard input */
void input_ready(struct source *source, uint32_t events);
void command_input(struct command *command, const char *data, size_t length);
void command_input_end(struct command *command);
bool command_waits(const struct command *command);        /* not started, or its standard input is full */
void command_resume(struct command *command);

/* output.c: from a command's pipes to its listeners and its log */
void out_ready(struct source *source, uint32_t events);
void err_ready(struct source *source, uint32_t events);
void command_watch_output(struct command *command);
bool command_maybe_finish(struct command *command);       /* true: it is gone */
int64_t command_timers(struct command *command, int64_t now); /* next deadline, 0: none */
void command_drain(struct command *command);

/* nursery.c: a child made ahead, inside the work cgroups already */
enum { WORK_EXEC, WORK_FILE };
enum { NURSERY_FORKED = 125 };           /* how the child ends that made a command; any other end is the command's */
void nursery_fill(void);
bool nursery_reaped(pid_t pid);
/* Hands the work over; 0 when no child waits to take it. Descriptors: streams and status of a command, or a file job's connection; -1 for none.
   File work is done by the child itself. For a command it makes another child, whose pid comes first on the status pipe. */
pid_t nursery_take(uint32_t work, const struct fields *request, const char *early, size_t early_length, const int descriptors[4]);

/* spawn.c: the child's side of exec */
void spawn(const struct fields *request, const struct exec_request *exec, const int streams[3], int status) __attribute__((noreturn));
bool enter_cgroups(struct failure *failure);
bool take_cpus(struct failure *failure);
bool find_identity(const char *user, struct identity *identity, struct failure *failure);
bool become(const struct identity *identity, struct failure *failure);

/* log.c */
void log_prepare(int folder);
int log_open(struct log *log, int folder, const char *id, uint64_t bytes);
void log_append(struct log *log, uint8_t kind, const char *data, size_t length);
void log_exit(struct log *log, const char *payload, size_t length);
uint64_t log_dropped(const struct log *log);
void log_discard(struct log *log);
void log_close(struct log *log);

/* users.c */
const char *resolve_user(const char *text, bool single_user, struct identity *identity); /* NULL, or an error code */

/* pump.c */
void dial_start(struct connection *connection, uint16_t port, bool six);
void forwards_listen(void);
int dial_outside(const char *name);    /* a socket in the folder of forwarded ones, -1 if there is none */
void forward_start(int inside, const char *name, const char *preface, size_t length); /* takes the descriptor, whatever comes of it */

/* ask.c: what the server knows of a name; `told` is called once, maybe at once */
enum { NAME_EXISTS = '+', NAME_MISSING = '-', NAME_UNKNOWN = '?' };
bool ask_room(void);
bool ask_crowded(void);
void ask_name(const char *name, void (*told)(void *context, char answer), void *context);

/* names.c: a resolver that knows what exists, and no address of it */
void names_listen(void);
const char *name_of(uint32_t address); /* the name an address stands for, NULL if none */

/* direct.c: what was dialled by such an address */
bool direct_allowed(void);             /* false: there is no network now */
void direct_listen(uint32_t address);  /* whoever dials it is led to the proxy from now on */

/* aio.c: asynchronous requests, which the machine counts for all */
void aio_listen(void);

/* files.c */
bool file_known(const char *op);
void file_start(struct connection *connection, const struct fields *request);
void file_child(int fd, const struct fields *request, const char *early, size_t early_length) __attribute__((noreturn));

#endif
