/* Started by bin/viv as: front NODE SCRIPT WORD... */
#include "carry.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH "x64"
#elif defined(__aarch64__)
#define ARCH "arm64"
#endif

/* The server does not carry out any others. */
static const char *const hot[] = {"exec", "run", "shell", "ls", "ps", "try"};

static const char ask[] = "GET /front HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: vivarium-front\r\n\r\n";
static const char taken[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: vivarium-front\r\n\r\n";

void give_to_node(const struct line *line) {
  execv(line->node_words[0], line->node_words);
  fprintf(stderr, "viv: %s can't be started: %s.\n", line->node_words[0], strerror(errno));
  exit(125);
}

/* As Node does: what is opened later must not take the place of a standard stream. */
static void open_standard_streams(void) {
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != fd) exit(125);
}

/* As Node does, whatever the parent has set. */
static void usual_signals(void) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  for (int number = 1; number < 32; number++)
    if (number != SIGKILL && number != SIGSTOP) signal(number, number == SIGPIPE || number == SIGXFSZ ? SIG_IGN : SIG_DFL);
}

static bool is_version(char **words) {
  if (words[0] == NULL || words[1] != NULL) return false;
  return strcmp(words[0], "version") == 0 || strcmp(words[0], "--version") == 0 || strcmp(words[0], "-V") == 0;
}

/* A reader that is gone is no failure. */
static int print_version(void) {
  static const char text[] = "viv " VIV_VERSION " (Node v" VIV_NODE ", linux " ARCH ")\n";
  return write_all(STDOUT_FILENO, text, sizeof text - 1) == 0 || errno == EPIPE ? 0 : 1;
}

static bool is_hot(const char *verb) {
  if (verb == NULL) return false;
  for (size_t at = 0; at < sizeof hot / sizeof hot[0]; at++)
    if (strcmp(verb, hot[at]) == 0) return true;
  return false;
}

int connect_to(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) return -1;
  strcpy(address.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

bool hand_over(int server, const struct output *request) {
  char answer[sizeof taken - 1];
  struct header header = {.length = (uint32_t)request->length, .kind = REQUEST};
  struct output whole = {0};
  /* In one write: the server then wakes once. */
  put_bytes(&whole, ask, sizeof ask - 1);
  put_bytes(&whole, &header, sizeof header);
  put_bytes(&whole, request->data, request->length);
  bool sent = write_all(server, whole.data, whole.length) == 0;
  output_free(&whole);
  return sent && read_all(server, answer, sizeof answer) == 0 && memcmp(answer, taken, sizeof answer) == 0;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "front: started by viv, not by hand.\n");
    return 125;
  }
  struct line line = {.words = argv + 3, .node_words = argv + 1};
  open_standard_streams();
  usual_signals();
  if (strcmp(argv[1], "--carry") == 0) return carry(argv + 2);
  /* With these, Node itself has more to say. */
  if (getenv("VIV_DEBUG") != NULL || getenv("NODE_OPTIONS") != NULL) give_to_node(&line);
  if (is_version(line.words)) return print_version();
  struct places places;
  struct output request = {0};
  if (!is_hot(line.words[0]) || !find_places(&places) || !compose_request(&request, &line, &places)) give_to_node(&line);
  int server = connect_to(places.socket.sun_path);
  if (server < 0 || !hand_over(server, &request)) give_to_node(&line);
  output_free(&request);
  int code = converse(server, &line);
  if (code < 0) give_to_node(&line);
  return code;
}
