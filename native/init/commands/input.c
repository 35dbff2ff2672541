/* From the clients of a command to its standard input. */
#include "commands.h"

#include <errno.h>
#include <unistd.h>

#define END_OF_INPUT "\x04" /* what a terminal takes for the end */

bool command_waits(const struct command *command) { return !command->started || command->input.length > 0; }

static void resume_listeners(struct command *command) {
  for (struct connection *connection = command->listeners, *next; connection != NULL; connection = next) {
    next = connection->next_listener;
    connection_resume(connection);
  }
}

void command_resume(struct command *command) {
  command_watch_output(command);
  if (command_waits(command)) return;
  struct connection *foreground = command->foreground;
  if (foreground != NULL) connection_resume(foreground);
  resume_listeners(command);
}

static void close_input(struct command *command) {
  source_close(&command->in);
  queue_free(&command->input);
}

void input_ready(struct source *source, uint32_t events) {
  (void)events;
  struct command *command = container(source, struct command, in);
  ssize_t left = queue_write(&command->input, source->fd);
  if (left > 0) return;
  source_watch(source, 0);
  if (left < 0 || (command->input_ending && !command->tty)) close_input(command);
  command_resume(command);
}

void command_input(struct command *command, const char *data, size_t length) {
  if (command->in.fd < 0 || command->input_ending) return; /* the program has closed it: input is dropped, as with a broken pipe */
  ssize_t written = length == 0 ? 0 : write(command->in.fd, data, length);
  if (written < 0 && errno != EAGAIN && errno != EINTR) return close_input(command);
  size_t done = written > 0 ? (size_t)written : 0;
  if (done == length) return;
  if (!queue_append(&command->input, data + done, length - done, CHUNK_MAX) || source_watch(&command->in, EPOLLOUT) != 0) close_input(command);
}

void command_input_end(struct command *command) {
  if (command->tty) return command_input(command, END_OF_INPUT, 1);
  command->input_ending = true;
  if (command->input.length == 0) close_input(command);
}
