/* What the server has to know of the caller to carry out its command line. */
#include "front.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

extern char **environ;

/* Whether Node would read the same characters: no overlong forms, no halves of pairs, nothing above U+10FFFF. */
bool is_utf8(const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  while (*at != '\0') {
    if (*at < 0x80) {
      at++;
      continue;
    }
    int more = *at >= 0xc2 && *at <= 0xdf ? 1 : (*at & 0xf0) == 0xe0 ? 2 : *at >= 0xf0 && *at <= 0xf4 ? 3 : 0;
    if (more == 0) return false;
    unsigned char low = *at == 0xe0 ? 0xa0 : *at == 0xf0 ? 0x90 : 0x80, high = *at == 0xed ? 0x9f : *at == 0xf4 ? 0x8f : 0xbf;
    if (at[1] < low || at[1] > high) return false;
    for (int next = 2; next <= more; next++)
      if ((at[next] & 0xc0) != 0x80) return false;
    at += more + 1;
  }
  return true;
}

static bool put_text(struct output *request, const char *key, const char *value) {
  if (!is_utf8(value)) return false;
  put_bytes(request, key, strlen(key));
  put_bytes(request, "=", 1);
  put_bytes(request, value, strlen(value) + 1);
  return true;
}

void put_terminal_size(struct output *output, const char *rows, const char *cols, int fd) {
  struct winsize size = {0};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0) size = (struct winsize){0};
  put(output, rows, "%u", (unsigned)size.ws_row);
  put(output, cols, "%u", (unsigned)size.ws_col);
}

/* A person at a terminal may answer questions; the token shows that this process may read it. */
static bool put_approver(struct output *request, const char *path) {
  char token[256];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true; /* then there are no questions at this terminal */
  ssize_t length = read(fd, token, sizeof token - 1);
  close(fd);
  if (length <= 0) return false;
  token[length] = '\0';
  token[strcspn(token, " \t\r\n")] = '\0';
  return put_text(request, "approver", token);
}

bool compose_request(struct output *request, const struct line *line, const struct places *places) {
  char folder[PATH_MAX];
  if (getcwd(folder, sizeof folder) == NULL || folder[0] != '/') return false;
  bool input = isatty(STDIN_FILENO), output = isatty(STDOUT_FILENO), error = isatty(STDERR_FILENO);
  put(request, "v", "%d", PROTOCOL_VERSION);
  put(request, "version", "%s", VIV_VERSION);
  put(request, "uid", "%u", (unsigned)getuid());
  put(request, "stdin_tty", "%d", input);
  put(request, "stdout_tty", "%d", output);
  put(request, "stderr_tty", "%d", error);
  put_terminal_size(request, "rows", "cols", STDOUT_FILENO);
  put_terminal_size(request, "stderr_rows", "stderr_cols", STDERR_FILENO);
  if (!put_text(request, "cwd", folder)) return false;
  if (input && output && !put_approver(request, places->approver)) return false;
  for (char **word = line->words; *word != NULL; word++)
    if (!put_text(request, "arg", *word)) return false;
  for (char **variable = environ; *variable != NULL; variable++)
    if (!put_text(request, "env", *variable)) return false;
  return request->length <= FRAME_MAX;
}
