/* Fuzzes the frame decoder and the handling of requests. The acts of process 1 are stood in for by ones that touch
   nothing: linked with shared/frames.c and init/channel/ alone. As a libFuzzer target, or by itself
   (-DFUZZ_MAIN): fuzz <seconds> [seed] [file to replay]... */
#include "../init/commands/commands.h"
#include "../init/files/files.h"
#include "../init/network/network.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct command the_command;
static struct connection *under_test;
static int sink = -1;
static size_t acts;

int source_watch(struct source *source, uint32_t events) { return (void)source, (void)events, 0; }
int source_idle(struct source *source) { return (void)source, 0; }
void source_close(struct source *source) { source->fd = -1; }
void retire(struct source *first_member) { (void)first_member; }
void begin_stop(int64_t grace_ms) { if (grace_ms < 0 || grace_ms > GRACE_LARGEST_MS) abort(); }
bool stopping(void) { return false; }

static struct shown_limits the_limits = {.meminfo = -1, .online = -1};
static const struct init_plan the_plan = {.limits = &the_limits};
const struct init_plan *plan = &the_plan;
void cpus_text(const cpu_set_t *set, char *text, size_t size) { (void)set, snprintf(text, size, "0-1"); }
void limits_choose(struct shown_limits *limits) { if (limits != &the_limits) abort(); }
int limits_tell_memory(const struct shown_limits *limits) { return (void)limits, 0; }
int limits_tell_cpus(const struct shown_limits *limits) { return (void)limits, 0; }

/* Reads every byte of what it is given, so that the sanitizer sees one too many. */
static void touch(const char *text) {
  volatile size_t length = text == NULL ? 0 : strlen(text);
  (void)length;
}

void command_start(struct connection *connection, const struct fields *request, const struct exec_request *exec) {
  acts++;
  if (strlen(exec->id) > 64 || (exec->user != NULL && strlen(exec->user) > 64) || exec->timeout_ms < 0 || exec->log_bytes < 0) abort();
  for (const char *value = field(request, "arg"); value != NULL; value = field_next(request, "arg", value)) touch(value);
  for (const char *value = field(request, "env"); value != NULL; value = field_next(request, "env", value)) touch(strchr(value, '=') + 1);
  touch(exec->cwd);
  if (exec->brief && acts % 2 == 0) return connection_renew(connection); /* it ended at once, and its connection takes another request */
  connection->command = &the_command;
  connection->input = exec->input;
  connection->foreground = true;
}
void command_attach(struct connection *connection, const char *id, bool input) {
  acts++;
  touch(id);
  connection->command = &the_command;
  connection->input = input;
}
void command_take(struct connection *connection, const char *id, const char *token) {
  acts++;
  touch(id);
  touch(token);
  connection->command = &the_command;
}
void command_hand_over(struct command *command, const char *token) {
  if (command != &the_command || strlen(token) < TOKEN_SHORTEST || strlen(token) > 64) abort();
}
void command_hand_back(struct command *command) { if (command != &the_command) abort(); }
void command_detach(struct connection *connection) { connection->command = NULL; }
void command_list(struct connection *connection) { connection_finish(connection); }
bool command_kill(const char *id, int signal) { return touch(id), signal > 5; }
void command_signal(struct command *command, int signal) { if (command != &the_command || signal < 1 || signal > 64) abort(); }
void command_resize(struct command *command, uint16_t rows, uint16_t cols) { if (command != &the_command || rows == 0 || cols == 0) abort(); }
void command_input(struct command *command, const char *data, size_t length) {
  if (command != &the_command || length > CHUNK_MAX) abort();
  for (size_t at = 0; at < length; at++) acts += data[at] == 'q';
}
void command_input_end(struct command *command) { (void)command; }
bool command_waits(const struct command *command) { return (void)command, false; }
void command_resume(struct command *command) { (void)command; }
size_t command_count(void) { return 1; }
static void dialled(struct connection *connection) {
  struct queue rest;
  int fd = connection_release(connection, &rest);
  if (fd >= 0) queue_free(&rest);
}
void dial_port(struct connection *connection, uint16_t port, bool six) {
  (void)six;
  if (port == 0) abort();
  dialled(connection);
}
void dial_path(struct connection *connection, const char *path) {
  if (path[0] != '/') abort();
  touch(path);
  dialled(connection);
}
bool file_known(const char *op) { return strncmp(op, "file.", 5) == 0; }
void file_start(struct connection *connection, const struct fields *request) {
  touch(field(request, "op"));
  touch(field(request, "path"));
  connection_close(connection);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (sink < 0) sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
  the_command = (struct command){.started = true};
  under_test = connection_open(sink);
  if (under_test == NULL) return 0;
  /* In pieces of every size: a frame may come in any number of reads. */
  for (size_t at = 0, piece = 1; at < size && under_test->source.fd >= 0; at += piece, piece = piece * 7 % 8191 + 1) {
    if (piece > size - at) piece = size - at;
    if (!queue_append(&under_test->in, data + at, piece, FRAME_MAX + 2 * CHUNK_MAX)) break;
    connection_receive(under_test);
  }
  if (under_test->source.fd >= 0) connection_close(under_test);
  free(under_test);
  return 0;
}

#ifdef FUZZ_MAIN
static const char *const words[] = {
    "v=1", "v=2", "op=exec", "op=attach", "op=list", "op=kill", "op=stop", "op=ping", "op=dial", "op=file.read", "op=nothing", "exec=a1", "exec=", "exec=A",
    "arg=true", "arg=", "env=A=b", "env=A", "env==", "cwd=/", "cwd=x", "user=root", "user=", "tty=1", "stdin=1", "brief=1", "rows=1", "rows=0", "cols=70000", "signal=9",
    "signal=99", "timeout_ms=5", "timeout_ms=-1", "log_bytes=99999999999999999999", "port=80", "port=0", "host=::1", "host=evil", "grace_ms=1", "path=/x", "=", "",
    "op=take", "token=", "token=a", "token=0123456789abcdef0123456789abcdef", "back=1",
};

static size_t frame(uint8_t *at, uint8_t kind, uint32_t length) {
  struct header header = {.length = length, .kind = kind};
  memcpy(at, &header, sizeof header);
  return sizeof header;
}

static size_t fields_frame(uint8_t *at, uint8_t kind) {
  static const char *const whole[] = {"stdin=1", "arg=true", "exec=a1", "op=exec", "v=1"};
  size_t length = 0;
  bool sound = rand() % 2 == 0;
  for (int count = (sound ? 5 : 0) + rand() % 8; count >= 0; count--) {
    const char *word = sound && count < 5 ? whole[count] : words[(size_t)rand() % (sizeof words / sizeof words[0])];
    memcpy(at + sizeof(struct header) + length, word, strlen(word) + 1);
    length += strlen(word) + 1;
  }
  return frame(at, kind, (uint32_t)length) + length;
}

/* Well-formed at first, then a few bytes are not. */
static size_t invent(uint8_t *data) {
  static const uint8_t kinds[] = {STDIN, STDIN_END, RESIZE, SIGNAL, HAND, REQUEST, EXIT, 0, 255};
  size_t size = fields_frame(data, REQUEST);
  for (int count = rand() % 5; count > 0; count--) {
    uint8_t kind = kinds[(size_t)rand() % sizeof kinds];
    if (kind == STDIN) {
      uint32_t length = (uint32_t)rand() % 3000;
      size += frame(data + size, STDIN, length) + length;
    } else {
      size += fields_frame(data + size, kind);
    }
  }
  for (int count = rand() % 4; count > 0; count--) data[(size_t)rand() % size] = (uint8_t)rand();
  return rand() % 4 == 0 ? (size_t)rand() % size : size;
}

static void replay(const char *path) {
  static uint8_t data[1 << 21];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t size = fd < 0 ? -1 : read(fd, data, sizeof data);
  if (size >= 0) LLVMFuzzerTestOneInput(data, (size_t)size);
  if (fd >= 0) close(fd);
}

int main(int argc, char **argv) {
  static uint8_t data[1 << 16];
  time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
  srand(argc > 2 ? (unsigned)atoi(argv[2]) : 1);
  for (int at = 3; at < argc; at++) replay(argv[at]);
  size_t runs = 0;
  for (; time(NULL) < end; runs++) {
    size_t size = invent(data);
    uint8_t *exact = malloc(size == 0 ? 1 : size); /* its end is where the sanitizer looks */
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
  }
  printf("runs=%zu acts=%zu\n", runs, acts);
  return acts > 0 ? 0 : 1;
}
#endif
