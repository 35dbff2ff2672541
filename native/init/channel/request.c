/* Requests on the sandbox channel: each is validated here and carried out elsewhere. */
#include "channel.h"
#include "../commands/commands.h"
#include "../files/files.h"
#include "../network/network.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

static void bad(struct connection *connection, const char *message) {
  connection_fail(connection, "bad-request", EINVAL, "request", message);
}

static bool valid_id(const char *id) {
  if (id == NULL) return false;
  size_t length = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789");
  return length >= 1 && length <= 64 && id[length] == '\0';
}

/* An absent number takes the default; a present one must lie within the bounds. */
static bool number(const struct fields *request, const char *key, int64_t least, int64_t most, int64_t *value) {
  if (field(request, key) == NULL) return true;
  return field_number(request, key, value) && *value >= least && *value <= most;
}

const char *exec_parse(const struct fields *request, struct exec_request *exec) {
  int64_t rows = 24, cols = 80;
  *exec = (struct exec_request){.id = field(request, "exec"), .user = field(request, "user"), .cwd = field(request, "cwd")};
  exec->tty = field_flag(request, "tty");
  exec->input = field_flag(request, "stdin");
  exec->brief = field_flag(request, "brief") && !exec->tty && !exec->input;
  if (!valid_id(exec->id)) return "exec= must be 1 to 64 of a-z and 0-9";
  const char *program = field(request, "arg");
  if (program == NULL || *program == '\0') return "arg= is missing";
  if (exec->user != NULL && (*exec->user == '\0' || strlen(exec->user) > 64)) return "user= is empty or too long";
  if (exec->cwd != NULL && exec->cwd[0] != '/') return "cwd= must be absolute";
  if (!number(request, "rows", 1, 65535, &rows) || !number(request, "cols", 1, 65535, &cols)) return "rows= or cols= is not a size";
  if (!number(request, "timeout_ms", 0, INT64_C(1) << 40, &exec->timeout_ms)) return "timeout_ms= is not a time";
  if (!number(request, "log_bytes", 0, INT64_C(1) << 50, &exec->log_bytes)) return "log_bytes= is not a size";
  for (const char *env = field(request, "env"); env != NULL; env = field_next(request, "env", env)) {
    const char *equals = strchr(env, '=');
    if (equals == NULL || equals == env) return "env= must be NAME=value";
  }
  exec->rows = (uint16_t)rows;
  exec->cols = (uint16_t)cols;
  return NULL;
}

static void handle_exec(struct connection *connection, const struct fields *request) {
  struct exec_request exec;
  const char *problem = exec_parse(request, &exec);
  if (problem != NULL) bad(connection, problem);
  else if (stopping()) connection_fail(connection, "closed", ESHUTDOWN, "exec", "the sandbox is stopping");
  else command_start(connection, request, &exec);
}

static void handle_attach(struct connection *connection, const struct fields *request) {
  if (!valid_id(field(request, "exec"))) bad(connection, "exec= must be 1 to 64 of a-z and 0-9");
  else command_attach(connection, field(request, "exec"), field_flag(request, "stdin"));
}

static void handle_take(struct connection *connection, const struct fields *request) {
  const char *token = field(request, "token");
  if (!valid_id(field(request, "exec")) || token == NULL) bad(connection, "exec= or token= is wrong");
  else command_take(connection, field(request, "exec"), token);
}

static void reply_ok(struct connection *connection) {
  connection_send(connection, REPLY, "ok=1", 5);
  connection_finish(connection);
}

static void handle_kill(struct connection *connection, const struct fields *request) {
  int64_t signal = SIGTERM;
  if (!valid_id(field(request, "exec")) || !number(request, "signal", 1, NSIG - 1, &signal)) bad(connection, "exec= or signal= is wrong");
  else if (!command_kill(field(request, "exec"), (int)signal)) connection_fail(connection, "not-found", ESRCH, "kill", "no such command is running");
  else reply_ok(connection);
}

static void handle_stop(struct connection *connection, const struct fields *request) {
  int64_t grace = GRACE_DEFAULT_MS;
  if (!number(request, "grace_ms", 0, GRACE_LARGEST_MS, &grace)) bad(connection, "grace_ms= is not a time");
  else begin_stop(grace); /* the connection closes with process 1 */
}

static void handle_ping(struct connection *connection, const struct fields *request) {
  (void)request;
  struct packet packet = {0};
  packet_put(&packet, "ok", "1");
  packet_put(&packet, "version", "%d", PROTOCOL_VERSION);
  packet_put(&packet, "commands", "%zu", command_count());
  connection_send(connection, REPLY, packet.data, packet.length);
  connection_finish(connection);
}

static void handle_limits(struct connection *connection, const struct fields *request) {
  struct shown_limits *limits = plan->limits;
  int64_t memory = 0, cpus = 0;
  char from[1500], to[1500];
  if (!number(request, "memory", 0, INT64_MAX, &memory) || !number(request, "cpus", 0, UINT16_MAX, &cpus)) return bad(connection, "memory= or cpus= is not a number");
  if (limits == NULL) return connection_fail(connection, "unsupported", ENOSYS, "limits", "nothing inside tells the limits");
  cpus_text(&limits->chosen, from, sizeof from);
  if (cpus > 0) limits->cpus = (uint32_t)cpus;
  if (memory > 0) limits->memory = (uint64_t)memory;
  limits_choose(limits);
  cpus_text(&limits->chosen, to, sizeof to);
  if ((limits->meminfo >= 0 && limits_tell_memory(limits) != 0) || (limits->online >= 0 && limits_tell_cpus(limits) != 0))
    return connection_fail(connection, "failed", errno, "limits", "the files inside could not be written");
  struct packet packet = {0};
  packet_put(&packet, "ok", "1");
  packet_put(&packet, "from", "%s", from);
  packet_put(&packet, "to", "%s", to);
  connection_send(connection, REPLY, packet.data, packet.length);
  connection_finish(connection);
}

static void other_version(struct connection *connection) {
  char message[64];
  snprintf(message, sizeof message, "this cell speaks v=%d", PROTOCOL_VERSION);
  connection_fail(connection, "unsupported", EPROTO, "request", message);
}

static void handle_dial(struct connection *connection, const struct fields *request) {
  int64_t port = 0;
  const char *host = field(request, "host");
  const char *path = field(request, "path");
  bool six = host != NULL && strcmp(host, "::1") == 0;
  if (path != NULL && (path[0] != '/' || strlen(path) >= sizeof((struct sockaddr_un *)NULL)->sun_path)) bad(connection, "path= is not that of a socket");
  else if (path != NULL) dial_path(connection, path);
  else if (host != NULL && !six && strcmp(host, "127.0.0.1") != 0) bad(connection, "host= must be 127.0.0.1 or ::1");
  else if (!field_number(request, "port", &port) || port < 1 || port > 65535) bad(connection, "port= is not a port");
  else dial_port(connection, (uint16_t)port, six);
}

static void handle_list(struct connection *connection, const struct fields *request) {
  (void)request;
  command_list(connection);
}

static const struct {
  const char *op;
  void (*handle)(struct connection *connection, const struct fields *request);
} operations[] = {
    {"exec", handle_exec}, {"attach", handle_attach}, {"list", handle_list}, {"kill", handle_kill},
    {"stop", handle_stop}, {"ping", handle_ping},     {"dial", handle_dial},
    {"limits", handle_limits}, {"take", handle_take},
};

/* Carrying out a request may end the connection and free the fields: nothing may touch them afterwards. */
void request_handle(struct connection *connection, const struct fields *request) {
  if (!fields_valid(request)) return bad(connection, "the payload is not a list of fields");
  int64_t version = 0;
  const char *op = field(request, "op");
  /* A server of any version may ask which one this is. */
  if (op != NULL && strcmp(op, "ping") == 0) return handle_ping(connection, request);
  if (!field_number(request, "v", &version) || version != PROTOCOL_VERSION) return other_version(connection);
  if (op == NULL) return bad(connection, "op= is missing");
  for (size_t at = 0; at < sizeof operations / sizeof operations[0]; at++) {
    if (strcmp(op, operations[at].op) == 0) return operations[at].handle(connection, request);
  }
  if (file_known(op)) return file_start(connection, request);
  connection_fail(connection, "unsupported", ENOSYS, "request", "no such operation");
}

/* Only who started the command may let another program take its output. */
static bool hand(struct connection *connection, const struct fields *fields) {
  const char *token = field(fields, "token");
  if (!connection->foreground) return false;
  if (token == NULL) command_hand_back(connection->command);
  else if (!valid_id(token) || strlen(token) < TOKEN_SHORTEST) return false;
  else command_hand_over(connection->command, token);
  return true;
}

bool request_blocked(const struct connection *connection, uint8_t kind) {
  (void)kind;
  return connection->command != NULL && command_waits(connection->command);
}

/* Frames after the request: they steer the command of this connection. `payload` is not NUL-terminated. */
bool request_frame(struct connection *connection, uint8_t kind, const char *payload, size_t length) {
  struct command *command = connection->command;
  struct fields fields = {payload, length};
  int64_t rows = 0, cols = 0, signal = 0;
  if (command == NULL) return false;
  switch (kind) {
    case STDIN:
      if (!connection->input) return false;
      command_input(command, payload, length);
      return true;
    case STDIN_END:
      if (!connection->input || length != 0) return false;
      command_input_end(command);
      return true;
    case RESIZE:
      if (!fields_valid(&fields) || !field_number(&fields, "rows", &rows) || !field_number(&fields, "cols", &cols)) return false;
      if (rows < 1 || rows > 65535 || cols < 1 || cols > 65535) return false;
      command_resize(command, (uint16_t)rows, (uint16_t)cols);
      return true;
    case SIGNAL:
      if (!fields_valid(&fields) || !field_number(&fields, "signal", &signal) || signal < 1 || signal >= NSIG) return false;
      command_signal(command, (int)signal);
      return true;
    case HAND: return fields_valid(&fields) && hand(connection, &fields);
    default: return false;
  }
}
