/* Commands: programs that process 1 runs for clients of its channel. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "../channel/channel.h"

#include <sys/resource.h>

struct log {
  int folder, fd;
  char name[80];
  uint64_t half, size;                   /* bytes of a file: bound and present */
  uint64_t total, current, previous;     /* bytes of output: ever, in this file, in the one before */
  uint64_t gap;                          /* bytes lost since the last frame that could be written */
  bool wanted, staged;
  size_t exit_length;
  char exit[512];
};

struct command {
  struct source out, err, in, status;
  struct command *next, *previous;
  struct connection *foreground, *listeners;
  struct connection *reader;             /* lossless in place of `foreground` while `handed` */
  bool handed;                           /* output waits for the reader, or goes to it */
  char token[65];                        /* that the reader must bring; empty when it has come */
  const char *rest;                      /* of a frame that the reader has not taken whole */
  size_t rest_length;
  bool err_waits;                        /* standard error is read when this much of standard output has been, which was there before */
  uint64_t err_behind;
  struct log log;
  struct queue input;
  char id[65], user[65];
  char arguments[ARGUMENTS_SHOWN];
  size_t arguments_length;
  pid_t pid;
  pid_t helper;                          /* the child made ahead that makes this one, until it ends or the pid is known */
  bool untold;                           /* the pid is not known yet */
  int late_signal;                       /* sent before it was */
  bool tty, brief, told_whole, started, exited, finished, timed_out, input_ending;
  int wait_status;
  struct rusage usage;
  uint64_t bytes, drained, drain_until;  /* output so far; after the end: seen, and what was in the pipes then */
  int64_t started_ms, started_at, ended_at;
  int64_t timeout_at, kill_at, finish_at; /* monotonic milliseconds, 0: none */
  int64_t reply_at;                       /* of a brief one that has not been told of yet: when it no longer is */
};

struct exec_request {
  const char *id, *user, *cwd;
  bool tty, input;
  bool brief;                            /* its client waits for the end, and needs nothing before */
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

/* channel/request.c */
const char *exec_parse(const struct fields *request, struct exec_request *exec); /* NULL, or what is wrong */

/* exec.c */
void command_start(struct connection *connection, const struct fields *request, const struct exec_request *exec);
void command_attach(struct connection *connection, const char *id, bool input);
void command_detach(struct connection *connection);
void command_list(struct connection *connection);
bool command_kill(const char *id, int signal);
void command_signal(struct command *command, int signal);
void command_resize(struct command *command, uint16_t rows, uint16_t cols);
struct command *command_find(const char *id);
void command_free(struct command *command);
bool command_was(struct command *command, pid_t pid); /* whether the child that ended was this command */
void command_goes_on(struct command *command);
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
void command_tell_whole(struct command *command, void (*begin)(struct source *, uint32_t));

/* hand.c: output that another program than the one that started the command reads */
#define TOKEN_SHORTEST 32
void command_hand_over(struct command *command, const char *token);
void command_take(struct connection *connection, const char *id, const char *token);
void command_hand_back(struct command *command);
void reader_send(struct command *command, const char *frame, size_t length);
bool reader_waits(struct command *command);               /* it can take nothing now */
void reader_settle(struct command *command);              /* what waits for it is copied */
void reader_finish(struct command *command);              /* it has got everything */

/* ready_child.c: a child made ahead, inside the work cgroups already */
enum { WORK_EXEC, WORK_FILE };
enum { READY_CHILD_USED_UP = 125 };          /* how the child ends that has made as many commands as it may */
void ready_child_make(void);
void ready_child_reaped(pid_t pid, int status);
void ready_child_became(pid_t pid);          /* it is a command itself now */
/* Hands the work over; 0 when no child waits to take it. Descriptors: streams and status of a command, or a file job's connection; -1 for none.
   File work is done by the child itself. For a command it makes another child, whose pid comes first on the status pipe. */
pid_t ready_child_take(uint32_t work, const struct fields *request, const char *early, size_t early_length, const int descriptors[4]);

/* spawn.c: the child's side of exec */
void spawn(const struct fields *request, const struct exec_request *exec, const int streams[3], int status) __attribute__((noreturn));
bool enter_cgroups(struct failure *failure);
bool take_cpus(struct failure *failure);
bool find_identity(const char *user, struct identity *identity, struct failure *failure);
bool become(const struct identity *identity, struct failure *failure);

/* stage.c: a log whose output comes faster than it is worth writing */
void log_stage(struct log *log);
char *log_room(struct log *log);                          /* for a frame of output with its header; NULL: it is not staged */
void log_staged(struct log *log, size_t length);          /* the frame in that room is complete */
int64_t log_timers(struct log *log, int64_t now);         /* next deadline, 0: none */
void log_unstage(struct log *log);                        /* writes all, and from now on at once */

/* log.c */
void log_prepare(int folder);
int log_open(struct log *log, int folder, const char *id, uint64_t bytes, bool begin);
void log_begin(struct log *log);             /* makes its file, if there is none */
void log_append(struct log *log, uint8_t kind, const char *data, size_t length);
void log_exit(struct log *log, const char *payload, size_t length);
void log_restart(struct log *log, uint64_t lost);         /* what is in the log makes room: output after it was lost */
void log_forget_older(struct log *log);
uint64_t log_dropped(const struct log *log);
void log_discard(struct log *log);
void log_close(struct log *log);

/* users.c */
const char *resolve_user(const char *text, bool single_user, struct identity *identity); /* NULL, or an error code */

#endif
