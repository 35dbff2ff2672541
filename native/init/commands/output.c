/* From a command's pipes to its listeners and its log, and the report of its end. */
#include "commands.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[sizeof(struct header) + HANDED_READ_MAX]; /* room for the header before what is read */

/* The connection that started the command is lossless, or the reader that has its output: while it does not take, nothing is read. */
void command_watch_output(struct command *command) {
  bool full = command->handed ? reader_waits(command) : command->foreground != NULL && command->foreground->out.length > 0;
  bool waits = !command->started || full;
  if (source_watch(&command->out, waits ? 0 : EPOLLIN) != 0) source_close(&command->out);
  if (source_watch(&command->err, waits ? 0 : EPOLLIN) != 0) source_close(&command->err);
}

static void tell_listener(struct connection *connection, const char *frame, size_t length) {
  size_t payload = length - sizeof(struct header);
  if (connection->out.length > LISTENER_MAX || (connection->gap > 0 && connection->out.length > 0)) {
    connection->gap += payload;
    return;
  }
  if (connection->gap > 0) {
    struct packet packet = {0};
    packet_put(&packet, "bytes", "%llu", (unsigned long long)connection->gap);
    connection->gap = 0;
    connection_send(connection, GAP, packet.data, packet.length);
  }
  connection_send_framed(connection, frame, length);
}

static void deliver(struct command *command, uint8_t kind, char *frame, size_t length) {
  struct header header = {.length = (uint32_t)length, .kind = kind};
  memcpy(frame, &header, sizeof header);
  command->bytes += length;
  if (command->exited) command->drained += length;
  if (kind == STDOUT) command->err_behind -= length < command->err_behind ? length : command->err_behind;
  if (frame == buffer) log_append(&command->log, kind, frame + sizeof header, length);
  else log_staged(&command->log, length);
  if (command->reader != NULL) reader_send(command, frame, sizeof header + length);
  else if (command->foreground != NULL && !command->handed) connection_send_framed(command->foreground, frame, sizeof header + length);
  for (struct connection *listener = command->listeners, *next; listener != NULL; listener = next) {
    next = listener->next_listener;
    tell_listener(listener, frame, sizeof header + length);
  }
}

/* True if there may be more. */
static bool take(struct command *command, struct source *source) {
  char *room = log_room(&command->log), *frame = room != NULL ? room : buffer;
  ssize_t count = read(source->fd, frame + sizeof(struct header), command->handed ? HANDED_READ_MAX : CHUNK_MAX);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (count <= 0) {
    source_close(source); /* a terminal without a program gives EIO: its end */
    return false;
  }
  deliver(command, source == &command->err ? STDERR : STDOUT, frame, (size_t)count);
  return true;
}

static void taken(struct command *command, struct source *source) {
  take(command, source);
  command_watch_output(command);
  command_maybe_finish(command);
}

void out_ready(struct source *source, uint32_t events) {
  (void)events;
  taken(container(source, struct command, out), source);
}

/* The wider pipe of output that was handed over holds more that was written before. */
static bool err_comes_later(struct command *command) {
  int before = 0;
  if (!command->handed || command->out.fd < 0) return false;
  if (!command->err_waits && ioctl(command->out.fd, FIONREAD, &before) == 0) command->err_behind = (uint64_t)before;
  command->err_waits = command->err_behind > 0;
  return command->err_waits;
}

void err_ready(struct source *source, uint32_t events) {
  struct command *command = container(source, struct command, err);
  (void)events;
  if (!err_comes_later(command)) taken(command, source);
}

static void describe_end(const struct command *command, struct packet *packet) {
  int status = command->wait_status;
  const struct rusage *usage = &command->usage;
  int64_t cpu = ((int64_t)usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000 + usage->ru_utime.tv_usec + usage->ru_stime.tv_usec;
  if (WIFSIGNALED(status)) packet_put(packet, "signal", "%d", WTERMSIG(status));
  else packet_put(packet, "code", "%d", WEXITSTATUS(status));
  packet_put(packet, "timeout", "%d", command->timed_out);
  packet_put(packet, "bytes", "%llu", (unsigned long long)command->bytes);
  packet_put(packet, "dropped", "%llu", (unsigned long long)log_dropped(&command->log));
  packet_put(packet, "cpu_us", "%lld", (long long)cpu);
  packet_put(packet, "max_rss_kib", "%ld", usage->ru_maxrss);
  packet_put(packet, "wall_ms", "%lld", (long long)(command->ended_at - command->started_at));
}

/* The client of a brief command goes on to use its connection. */
static void keep_connection(struct connection *connection, struct packet packet) {
  packet_put(&packet, "kept", "1");
  connection_send(connection, EXIT, packet.data, packet.length);
  connection_renew(connection);
}

static void finish_connection(struct connection *connection, const struct packet *packet) {
  if (connection->gap > 0) {
    struct packet gap = {0};
    packet_put(&gap, "bytes", "%llu", (unsigned long long)connection->gap);
    connection->gap = 0;
    connection_send(connection, GAP, gap.data, gap.length);
  }
  connection_send(connection, EXIT, packet->data, packet->length);
  connection_finish(connection);
}

static void finish(struct command *command) {
  command->finished = true;
  command->finish_at = 0;
  command->timeout_at = 0;
  source_close(&command->in);
  queue_free(&command->input);
  struct packet packet = {0};
  reader_finish(command);
  describe_end(command, &packet);
  struct connection *foreground = command->foreground;
  bool is_heard = foreground != NULL && !foreground->hung && !foreground->ended;
  /* What ended within a moment and printed nothing needs no log, if its client is there to hear of it. */
  if (!(is_heard && command->told_whole && command->bytes == 0)) log_exit(&command->log, packet.data, packet.length);
  if (is_heard && command->brief) keep_connection(foreground, packet);
  else if (foreground != NULL) finish_connection(foreground, &packet);
  while (command->listeners != NULL) finish_connection(command->listeners, &packet);
}

/* Kept after its end only while a background child may still print, or a kill is due. */
static bool maybe_free(struct command *command) {
  if (!command->finished || command->out.fd >= 0 || command->err.fd >= 0 || command->kill_at != 0) return false;
  command_free(command);
  return true;
}

bool command_maybe_finish(struct command *command) {
  if (!command->exited || !command->started) return false;
  bool closed = command->out.fd < 0 && command->err.fd < 0;
  bool lingered = command->finish_at != 0 && now_ms() >= command->finish_at && command->drained >= command->drain_until;
  if (!command->finished && (closed || lingered)) finish(command);
  return maybe_free(command);
}

static bool has_enough(const struct connection *connection) { return connection != NULL && connection->out.length >= CHUNK_MAX; }

/* A brief command that has ended: its start, its output and its end go to the client at once, which so wakes up once. */
void command_tell_whole(struct command *command, void (*begin)(struct source *, uint32_t)) {
  struct connection *foreground = command->foreground;
  command->told_whole = true;
  if (foreground != NULL) foreground->corked = true;
  begin(&command->status, EPOLLIN);
  bool gone = !command->started; /* it could not be started */
  if (!gone) {
    while (command->out.fd >= 0 && !has_enough(foreground) && take(command, &command->out)) continue;
    while (command->err.fd >= 0 && !has_enough(foreground) && take(command, &command->err)) continue;
    gone = command_maybe_finish(command);
  }
  if (foreground != NULL) connection_uncork(foreground);
  /* The child that made it may hold its pipes for another moment. */
  if (!gone) command_watch_output(command);
}

static int64_t sooner(int64_t one, int64_t other) { return one == 0 || (other != 0 && other < one) ? other : one; }

int64_t command_timers(struct command *command, int64_t now) {
  if (command->reply_at != 0 && now >= command->reply_at) command_goes_on(command);
  if (command->timeout_at != 0 && now >= command->timeout_at) {
    command->timeout_at = 0;
    command->timed_out = true;
    command->kill_at = now + KILL_AFTER_MS;
    command_signal(command, SIGTERM);
    command_signal(command, SIGCONT); /* a stopped program cannot end by itself */
  }
  if (command->kill_at != 0 && now >= command->kill_at) {
    command->kill_at = 0;
    command_signal(command, SIGKILL);
    if (maybe_free(command)) return 0;
  }
  if (command->finish_at != 0 && now >= command->finish_at && command_maybe_finish(command)) return 0;
  int64_t nearest = sooner(sooner(command->timeout_at, command->kill_at), log_timers(&command->log, now));
  /* Past its time and not finished, it waits for its reader, which wakes the loop. */
  if (command->finish_at > now) nearest = sooner(nearest, command->finish_at);
  return sooner(nearest, command->reply_at);
}

/* At the end of the sandbox: what the pipes still hold goes to the log. */
void command_drain(struct command *command) {
  if (!command->exited || !command->started || command->finished) return;
  reader_settle(command);
  while (command->out.fd >= 0 && take(command, &command->out)) continue;
  while (command->err.fd >= 0 && take(command, &command->err)) continue;
  finish(command);
}
