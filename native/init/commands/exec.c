/* Commands: started, listed, fed, signalled. What they print is in output.c, the child's side in spawn.c. */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct command *commands;
static size_t commands_kept;

struct command *command_first(void) { return commands; }

size_t command_count(void) {
  size_t running = 0;
  for (struct command *command = commands; command != NULL; command = command->next) running += !command->exited;
  return running;
}

struct command *command_find(const char *id) {
  for (struct command *command = commands; command != NULL; command = command->next) {
    if (strcmp(command->id, id) == 0) return command;
  }
  return NULL;
}

void command_free(struct command *command) {
  if (command->previous != NULL) command->previous->next = command->next;
  else commands = command->next;
  if (command->next != NULL) command->next->previous = command->previous;
  commands_kept--;
  source_close(&command->out);
  source_close(&command->err);
  source_close(&command->in);
  source_close(&command->status);
  queue_free(&command->input);
  log_unstage(&command->log);
  log_close(&command->log);
  retire(&command->out);
}

/* The three streams of a command: ours stay in the loop, theirs go to the child. */
static int open_pipes(struct command *command, bool input, int theirs[3]) {
  int pair[2];
  if (input) {
    if (pipe2(pair, O_CLOEXEC) != 0) return -1;
    theirs[0] = pair[0];
    command->in.fd = pair[1];
  }
  if (pipe2(pair, O_CLOEXEC) != 0) return -1;
  command->out.fd = pair[0];
  theirs[1] = pair[1];
  if (pipe2(pair, O_CLOEXEC) != 0) return -1;
  command->err.fd = pair[0];
  theirs[2] = pair[1];
  return 0;
}

/* devpts can hold nothing but terminals, so the name below it is safe whatever happened to /dev. */
static int open_terminal(struct command *command, const struct exec_request *exec, int theirs[3]) {
  int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (master < 0) master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (master < 0) return -1;
  command->out.fd = master;
  int unlock = 0;
  struct winsize size = {.ws_row = exec->rows, .ws_col = exec->cols};
  if (ioctl(master, TIOCSPTLCK, &unlock) != 0 || ioctl(master, TIOCSWINSZ, &size) != 0) return -1;
  theirs[0] = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (theirs[0] < 0) return -1;
  if (exec->input) command->in.fd = fcntl(master, F_DUPFD_CLOEXEC, 0);
  return exec->input && command->in.fd < 0 ? -1 : 0;
}

static void set_nonblocking(int fd) {
  if (fd >= 0) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void started(struct command *command) {
  command->started = true;
  command->reply_at = 0;
  struct packet packet = {0};
  packet_put(&packet, "ok", "1");
  packet_put(&packet, "pid", "%d", (int)command->pid);
  packet_put(&packet, "hands", "1");
  if (command->foreground != NULL) connection_send(command->foreground, REPLY, packet.data, packet.length);
  command_watch_output(command);
  command_resume(command);
}

static const char *explain(const struct failure *failure) {
  if (strcmp(failure->step, "exec") != 0) return strerror(failure->error);
  if (failure->error == ENOENT) return "no such program, or the interpreter it names is missing";
  if (failure->error == ENOEXEC) return "the program is in no format that can be run";
  return strerror(failure->error);
}

static void failed(struct command *command, const struct failure *failure) {
  struct connection *connection = command->foreground;
  command->exited = true; /* its child is reaped like an orphan */
  log_discard(&command->log);
  if (connection != NULL) connection_fail(connection, failure->code, failure->error, failure->step, explain(failure));
  while (command->listeners != NULL) connection_fail(command->listeners, "not-found", ESRCH, "attach", "the command could not be started");
  command_free(command);
}

static void know_pid(struct command *command, pid_t pid) {
  if (pid == command->helper) ready_child_became(pid);
  command->untold = false;
  command->helper = 0;
  command->pid = pid;
  if (command->late_signal != 0) command_signal(command, command->late_signal);
}

/* False with errno EAGAIN: it is not told yet; with another: it never will be. */
static bool learn_pid(struct command *command) {
  pid_t pid;
  if (!command->untold) return true;
  errno = 0;
  if (read(command->status.fd, &pid, sizeof pid) != sizeof pid) return false;
  know_pid(command, pid);
  return true;
}

/* The pid will never be told: the child made ahead ended before it made the command, or something inside killed or stopped the
   command in its first moment. */
static void never_told(struct command *command) {
  know_pid(command, 0);
  source_close(&command->status);
  started(command);
  command_reaped(command, SIGKILL, &(struct rusage){0});
}

bool command_was(struct command *command, pid_t pid) {
  if (command->exited) return false;
  if (learn_pid(command)) return command->pid == pid;
  if (command->helper != pid) return false;
  command->helper = 0;
  /* The command may have been made all the same, and tell its number now; the end of the pipe says that it was not. */
  source_watch(&command->status, EPOLLIN);
  return false;
}

/* The child's end of this pipe closes when it runs the program; before, it may tell what went wrong. */
static void status_ready(struct source *source, uint32_t events) {
  (void)events;
  struct command *command = container(source, struct command, status);
  struct failure failure;
  if (!learn_pid(command)) {
    if (errno == EAGAIN || errno == EINTR) return;
    return never_told(command);
  }
  ssize_t count = read(source->fd, &failure, sizeof failure);
  if (count < 0 && (errno == EAGAIN || errno == EINTR) && !command->exited) return;
  source_close(source);
  if (count != sizeof failure) return started(command);
  failure.code[sizeof failure.code - 1] = failure.step[sizeof failure.step - 1] = '\0';
  failed(command, &failure);
}

static struct command *make(const struct fields *request, const struct exec_request *exec) {
  struct command *command = calloc(1, sizeof *command);
  if (command == NULL) return NULL;
  command->out = (struct source){.fd = -1, .ready = out_ready};
  command->err = (struct source){.fd = -1, .ready = err_ready};
  command->in = (struct source){.fd = -1, .ready = input_ready};
  command->status = (struct source){.fd = -1, .ready = status_ready};
  command->log.fd = -1;
  command->tty = exec->tty;
  command->brief = exec->brief;
  strcpy(command->id, exec->id); /* both lengths were checked with the request */
  strcpy(command->user, exec->user != NULL ? exec->user : "");
  for (const char *argument = field(request, "arg"); argument != NULL; argument = field_next(request, "arg", argument)) {
    size_t length = strlen(argument) + 5;
    if (length > sizeof command->arguments - command->arguments_length) break;
    memcpy(command->arguments + command->arguments_length, argument - 4, length);
    command->arguments_length += length;
  }
  command->next = commands;
  if (commands != NULL) commands->previous = command;
  commands = command;
  commands_kept++;
  return command;
}

static void launch(struct command *command, const struct fields *request, const struct exec_request *exec, const int theirs[3]) {
  struct failure failure = {.step = "fork"};
  int status[2];
  if (pipe2(status, O_CLOEXEC | O_NONBLOCK) != 0) {
    failure.error = errno;
    strcpy(failure.code, "too-many");
    return failed(command, &failure);
  }
  const int handed[4] = {theirs[0], theirs[1], theirs[2], status[1]};
  command->helper = ready_child_take(WORK_EXEC, request, NULL, 0, handed);
  command->untold = command->helper != 0;
  if (!command->untold) {
    command->pid = fork_child();
    if (command->pid == 0) spawn(request, exec, theirs, status[1]);
  }
  failure.error = errno;
  close(status[1]);
  command->status.fd = status[0];
  if (command->brief) command->reply_at = command->started_at + BRIEF_MS;
  /* Its end is enough to know: the pid comes before it. */
  if (command->pid < 0 || (!command->brief && source_idle(&command->status) != 0)) {
    if (command->helper > 0) kill(command->helper, SIGKILL);
    if (command->pid > 0) kill(command->pid, SIGKILL);
    strcpy(failure.code, code_of_errno(failure.error));
    failed(command, &failure);
  }
}

static const char *prepare(struct command *command, const struct exec_request *exec, int theirs[3]) {
  if (log_open(&command->log, plan->logs, exec->id, (uint64_t)exec->log_bytes, !exec->brief) != 0) return "log";
  if (exec->tty) return open_terminal(command, exec, theirs) != 0 ? "terminal" : NULL;
  if (open_pipes(command, exec->input, theirs) != 0) return "pipe";
  return NULL;
}

void command_start(struct connection *connection, const struct fields *request, const struct exec_request *exec) {
  if (command_find(exec->id) != NULL) return connection_fail(connection, "exists", EEXIST, "exec", "a command with this id exists");
  if (commands_kept >= COMMANDS_MAX) return connection_fail(connection, "too-many", EAGAIN, "exec", "too many commands run in this sandbox");
  struct command *command = make(request, exec);
  if (command == NULL) return connection_fail(connection, "failed", ENOMEM, "exec", "no memory");
  connection->command = command;
  connection->foreground = true;
  connection->input = exec->input;
  command->foreground = connection;
  int theirs[3] = {-1, -1, -1};
  const char *step = prepare(command, exec, theirs);
  int error = errno;
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  command->started_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000;
  command->started_at = now_ms();
  if (exec->timeout_ms > 0) command->timeout_at = command->started_at + exec->timeout_ms;
  set_nonblocking(command->in.fd);
  set_nonblocking(command->out.fd);
  set_nonblocking(command->err.fd);
  if (step == NULL) {
    launch(command, request, exec, theirs);
  } else {
    struct failure failure = {.error = error};
    strcpy(failure.code, code_of_errno(error));
    strcpy(failure.step, step);
    failed(command, &failure);
  }
  for (int at = 0; at < 3; at++) {
    if (theirs[at] >= 0) close(theirs[at]);
  }
}

void command_reaped(struct command *command, int status, const struct rusage *usage) {
  command->exited = true;
  command->wait_status = status;
  command->usage = *usage;
  command->ended_at = now_ms();
  command->timeout_at = 0;
  int available = 0;
  if (!command->tty && command->out.fd >= 0 && ioctl(command->out.fd, FIONREAD, &available) == 0) command->drain_until += (uint64_t)available;
  if (!command->tty && command->err.fd >= 0 && ioctl(command->err.fd, FIONREAD, &available) == 0) command->drain_until += (uint64_t)available;
  command->finish_at = command->ended_at + LINGER_MS;
  if (command->brief && !command->started) return command_tell_whole(command, status_ready);
  if (command->status.fd >= 0) status_ready(&command->status, EPOLLIN);
  else command_maybe_finish(command);
}

/* It runs longer than a moment: from now on it is told of like any other. */
void command_goes_on(struct command *command) {
  command->reply_at = 0;
  log_begin(&command->log);
  if (command->status.fd >= 0 && source_idle(&command->status) != 0) command_signal(command, SIGKILL);
}

void command_attach(struct connection *connection, const char *id, bool input) {
  struct command *command = command_find(id);
  if (command == NULL || command->finished) return connection_fail(connection, "not-found", ESRCH, "attach", "no such command is running");
  connection->command = command;
  connection->input = input;
  connection->next_listener = command->listeners;
  command->listeners = connection;
  struct packet packet = {0};
  packet_put(&packet, "ok", "1");
  packet_put(&packet, "offset", "%llu", (unsigned long long)command->bytes);
  connection_send(connection, REPLY, packet.data, packet.length);
}

void command_detach(struct connection *connection) {
  struct command *command = connection->command;
  if (command == NULL) return;
  connection->command = NULL;
  if (command->foreground == connection) {
    command->foreground = NULL;
    command_hand_back(command); /* without who started it, the command waits for no reader */
  }
  if (command->reader == connection) {
    command->reader = NULL;
    command_hand_back(command);
  }
  for (struct connection **at = &command->listeners; *at != NULL; at = &(*at)->next_listener) {
    if (*at != connection) continue;
    *at = connection->next_listener;
    break;
  }
}

void command_list(struct connection *connection) {
  for (struct command *command = commands; command != NULL; command = command->next) {
    struct packet packet = {0};
    packet_put(&packet, "exec", "%s", command->id);
    packet_put(&packet, "pid", "%d", (int)command->pid);
    packet_bytes(&packet, command->arguments, command->arguments_length);
    packet_put(&packet, "user", "%s", command->user);
    packet_put(&packet, "started_ms", "%lld", (long long)command->started_ms);
    packet_put(&packet, "running", "%d", !command->exited);
    connection_send(connection, ENTRY, packet.data, packet.length);
  }
  connection_send(connection, END, NULL, 0);
  connection_finish(connection);
}

/* A command that is to be killed before it told its number need not be waited for: without a reader it dies of telling it, before it
   becomes a program, whenever the child that makes it gets to that. */
static void signal_later(struct command *command, int signal) {
  if (signal == SIGKILL) return never_told(command);
  if (signal != SIGCONT) command->late_signal = signal;
  if (command->helper != 0 && signal == SIGCONT) kill(command->helper, signal);
  source_watch(&command->status, EPOLLIN);
}

/* The group outlives its leader; a number that a newer command bears is left alone. */
void command_signal(struct command *command, int signal) {
  if (!learn_pid(command)) return signal_later(command, signal);
  for (struct command *other = commands; other != NULL && command->exited; other = other->next) {
    if (other != command && other->pid == command->pid && !other->exited) return;
  }
  if (command->pid > 1 && kill(-command->pid, signal) != 0 && !command->exited) kill(command->pid, signal);
}

bool command_kill(const char *id, int signal) {
  struct command *command = command_find(id);
  if (command == NULL) return false;
  command_signal(command, signal);
  return true;
}

void command_resize(struct command *command, uint16_t rows, uint16_t cols) {
  struct winsize size = {.ws_row = rows, .ws_col = cols};
  if (command->tty && command->out.fd >= 0) ioctl(command->out.fd, TIOCSWINSZ, &size);
}
