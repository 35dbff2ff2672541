/* What the server asks for: a word and decimal numbers. */
#include "parts.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Takes the next number off the text; false if there is none, or if it is no number. */
static bool number(const char **text, uint64_t *value) {
  if (**text != ' ' || (*text)[1] < '0' || (*text)[1] > '9') return false;
  char *end;
  errno = 0;
  *value = strtoull(*text + 1, &end, 10);
  *text = end;
  return errno == 0 && (*end == ' ' || *end == '\0');
}

static int digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* A path may hold any byte, so it comes in hexadecimal digits. */
static bool path_of(const char *text, char *path, size_t size) {
  size_t length = strlen(text);
  if (length == 0 || length % 2 != 0 || length / 2 >= size) return false;
  for (size_t at = 0; at < length / 2; at++) {
    int high = digit(text[2 * at]), low = digit(text[2 * at + 1]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return false;
    path[at] = (char)(high << 4 | low);
  }
  path[length / 2] = '\0';
  return path[0] == '/';
}

static bool handle(const char *word, const char *rest, int *fd) {
  uint64_t id, second, third;
  char path[256];
  int given = *fd;
  if (!number(&rest, &id)) return false;
  if (strcmp(word, "hold") == 0 && *rest == '\0') {
    *fd = -1;
    return connection_hold(id, given), true;
  }
  if (strcmp(word, "cut") == 0 && *rest == '\0') return connection_cut(id), true;
  if (strcmp(word, "drop") == 0 && *rest == '\0') return connection_drop(id), true;
  if (strcmp(word, "shut") == 0 && *rest == '\0' && id <= UINT32_MAX) return door_shut((uint32_t)id), true;
  if (strcmp(word, "door") == 0 && *rest == ' ' && id <= UINT32_MAX && path_of(rest + 1, path, sizeof path)) return door_open((uint32_t)id, path), true;
  if (!number(&rest, &second) || second > INT64_MAX) return false;
  if (strcmp(word, "join") == 0 && *rest == '\0') {
    *fd = -1;
    return connection_join(id, given, (int64_t)second), true;
  }
  if (strcmp(word, "body") != 0 || !number(&rest, &third) || *rest != '\0' || third == 0 || third > INT64_MAX) return false;
  *fd = -1;
  return connection_body(id, given, third, (int64_t)second), true;
}

void server_request(const char *text, int fd) {
  char word[8] = "";
  size_t length = strcspn(text, " ");
  if (length < sizeof word) memcpy(word, text, length);
  bool known = length < sizeof word && handle(word, text + length, &fd);
  if (fd >= 0) close(fd);
  if (!known) exit(1); /* the server is of another version; it starts one of its own */
}
