/* Output that a program on the host reads itself, so that it does not pass through who started the command. That one says a token;
   the reader brings it on a connection of its own. Nothing is lost or told twice: what was read before the hand-over has gone to
   who started the command, and what comes after it waits for the reader. */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void widen(int fd, int bytes) {
  if (fd >= 0) fcntl(fd, F_SETPIPE_SZ, bytes); /* no more than a wish: users have a bound for all their pipes */
}

void command_hand_over(struct command *command, const char *token) {
  if (command->handed || command->finished) return;
  strcpy(command->token, token); /* its length was checked with the frame */
  command->handed = true;
  widen(command->out.fd, HANDED_PIPE);
  widen(command->err.fd, HANDED_PIPE);
  struct packet packet = {0};
  packet_put(&packet, "event", "handed");
  packet_put(&packet, "offset", "%llu", (unsigned long long)command->bytes);
  connection_send(command->foreground, EVENT, packet.data, packet.length);
  command_watch_output(command);
}

/* Looks at every byte of both, so that the time it takes says nothing of the token. */
static bool is_token(const struct command *command, const char *token) {
  size_t length = strlen(command->token);
  unsigned char differs = length < TOKEN_SHORTEST || strlen(token) != length;
  for (size_t at = 0; !differs && at < length; at++) differs |= (unsigned char)(command->token[at] ^ token[at]);
  return !differs;
}

void command_take(struct connection *connection, const char *id, const char *token) {
  struct command *command = command_find(id);
  if (command == NULL || !command->handed || command->reader != NULL || !is_token(command, token))
    return connection_fail(connection, "not-found", ESRCH, "take", "no output is handed over so");
  memset(command->token, 0, sizeof command->token);
  connection->command = command;
  command->reader = connection;
  int room = 2 * HANDED_READ_MAX;
  setsockopt(connection->source.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  log_stage(&command->log);
  connection_send(connection, REPLY, "ok=1", 5);
  command_watch_output(command);
}

static void send_rest(struct command *command) {
  struct connection *reader = command->reader;
  while (command->rest_length > 0) {
    ssize_t written = write(reader->source.fd, command->rest, command->rest_length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      reader->full = errno == EAGAIN;
      reader->hung |= errno != EAGAIN;
      if (reader->hung) command->rest_length = 0;
      return;
    }
    command->rest += written;
    command->rest_length -= (size_t)written;
  }
}

/* Before that memory is used for something else. */
void reader_settle(struct command *command) {
  size_t length = command->rest_length;
  command->rest_length = 0;
  if (command->reader != NULL && length > 0) connection_send_framed(command->reader, command->rest, length);
}

/* A frame in the memory of a staged log stays there until the next one is read: what finds no room now is sent from there. */
void reader_send(struct command *command, const char *frame, size_t length) {
  struct connection *reader = command->reader;
  if (reader->source.fd < 0 || reader->hung) return;
  reader_settle(command); /* at the end of the sandbox, no reader is waited for */
  if (reader->out.length > 0 || !command->log.staged) return connection_send_framed(reader, frame, length);
  command->rest = frame;
  command->rest_length = length;
  send_rest(command);
}

bool reader_waits(struct command *command) {
  struct connection *reader = command->reader;
  if (reader == NULL || reader->out.length > 0) return true;
  if (command->rest_length > 0 && !reader->full) send_rest(command);
  if (command->rest_length == 0) return false;
  connection_update(reader);
  return command->handed; /* a reader that can't be watched is gone by now */
}

void command_hand_back(struct command *command) {
  struct connection *reader = command->reader;
  command->handed = false;
  command->reader = NULL;
  command->rest_length = 0;
  memset(command->token, 0, sizeof command->token);
  log_unstage(&command->log);
  if (reader != NULL) connection_close(reader);
  command_watch_output(command);
}

void reader_finish(struct command *command) {
  struct connection *reader = command->reader;
  reader_settle(command);
  command->handed = false;
  command->reader = NULL;
  log_unstage(&command->log);
  if (reader == NULL) return;
  reader->command = NULL;
  connection_send(reader, END, NULL, 0);
  connection_finish(reader);
}
