/* What the server asks for: a word, decimal numbers, and bytes in hexadecimal digits. */
#include "parts.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ADDRESS_MAX 64
#define TAIL_MAX 256

/* Takes the next number off the text; false if there is none, or if it is no number. */
static bool number(const char **text, uint64_t *value) {
  if (**text != ' ' || (*text)[1] < '0' || (*text)[1] > '9') return false;
  char *end;
  errno = 0;
  *value = strtoull(*text + 1, &end, 10);
  *text = end;
  return errno == 0 && (*end == ' ' || *end == '\0');
}

static bool milliseconds(const char **text, int64_t *value) {
  uint64_t given;
  if (!number(text, &given) || given > INT64_MAX) return false;
  *value = (int64_t)given;
  return true;
}

static int digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* Takes the next bytes off the text: how many; none if they are no such bytes, or too many. */
static size_t bytes_of(const char **text, uint8_t *data, size_t size) {
  const char *digits = *text + 1;
  size_t count = **text == ' ' ? strcspn(digits, " ") : 0;
  if (count % 2 != 0 || count / 2 > size) return 0;
  for (size_t at = 0; at < count / 2; at++) {
    int high = digit(digits[2 * at]), low = digit(digits[2 * at + 1]);
    if (high < 0 || low < 0) return 0;
    data[at] = (uint8_t)(high << 4 | low);
  }
  if (count > 0) *text = digits + count;
  return count / 2;
}

/* A path may hold any byte, so it comes in hexadecimal digits. */
static bool path_of(const char *text, char *path, size_t size) {
  size_t length = bytes_of(&text, (uint8_t *)path, size - 1);
  path[length] = '\0';
  return *text == '\0' && path[0] == '/' && strlen(path) == length;
}

static bool address_of(const char **text, char *address) {
  size_t length = **text == ' ' ? strcspn(*text + 1, " ") : 0;
  if (length == 0 || length >= ADDRESS_MAX) return false;
  memcpy(address, *text + 1, length);
  address[length] = '\0';
  *text += 1 + length;
  return true;
}

static uint8_t head[LINE_MAX_BYTES / 2], tail[TAIL_MAX];

static bool fetch(uint64_t id, const char *rest, bool tunnels) {
  struct exchange_request request = {.tunnels = tunnels, .data = head, .tail = tail};
  char address[ADDRESS_MAX];
  uint64_t port;
  if (!address_of(&rest, address) || !number(&rest, &port) || port == 0 || port > UINT16_MAX) return false;
  if (!milliseconds(&rest, &request.within_ms) || !milliseconds(&rest, &request.idle_ms) || !milliseconds(&rest, &request.keep_ms)) return false;
  request.address = address;
  request.port = (uint16_t)port;
  request.length = bytes_of(&rest, head, sizeof head);
  request.tail_length = tunnels ? 0 : bytes_of(&rest, tail, sizeof tail);
  if (request.length == 0 || *rest != '\0') return false;
  return exchange_fetch(id, &request), true;
}

static bool reply(uint64_t id, const char *rest, bool counted) {
  struct exchange_reply given = {.count = UINT64_MAX, .data = head};
  if (counted && (!milliseconds(&rest, &given.keep_ms) || !number(&rest, &given.count) || given.count == UINT64_MAX)) return false;
  given.length = bytes_of(&rest, head, sizeof head);
  if (given.length == 0 || *rest != '\0') return false;
  return exchange_reply(id, &given), true;
}

/* What comes without a socket. */
static bool handle_words(const char *word, uint64_t id, const char *rest) {
  char path[256];
  if (strcmp(word, "fetch") == 0) return fetch(id, rest, false);
  if (strcmp(word, "open") == 0) return fetch(id, rest, true);
  if (strcmp(word, "reply") == 0) return reply(id, rest, true);
  if (strcmp(word, "stream") == 0) return reply(id, rest, false);
  if (strcmp(word, "door") == 0) return id <= UINT32_MAX && path_of(rest, path, sizeof path) && (door_open((uint32_t)id, path), true);
  if (*rest != '\0') return false;
  if (strcmp(word, "cut") == 0) return connection_cut(id), true;
  if (strcmp(word, "drop") == 0) return connection_drop(id), true;
  if (strcmp(word, "go") == 0) return exchange_go(id), true;
  if (strcmp(word, "more") == 0) return exchange_more(id), true;
  if (strcmp(word, "give") == 0) return exchange_give(id), true;
  if (strcmp(word, "carry") == 0) return tunnel_carry(id), true;
  return strcmp(word, "shut") == 0 && id <= UINT32_MAX && (door_shut((uint32_t)id), true);
}

static bool handle(const char *word, const char *rest, int *fd) {
  uint64_t id, count = 0;
  int64_t idle_ms;
  int given = *fd;
  if (!number(&rest, &id)) return false;
  bool holds = strcmp(word, "hold") == 0, joins = strcmp(word, "join") == 0, moves = strcmp(word, "body") == 0;
  if (!holds && !joins && !moves) return handle_words(word, id, rest);
  if (!holds && !milliseconds(&rest, &idle_ms)) return false;
  if (moves && (!number(&rest, &count) || count == 0 || count > INT64_MAX)) return false;
  if (*rest != '\0') return false;
  *fd = -1;
  if (holds) connection_hold(id, given);
  else if (joins) connection_join(id, given, idle_ms);
  else connection_body(id, given, count, idle_ms);
  return true;
}

void server_request(const char *text, int fd) {
  char word[8] = "";
  size_t length = strcspn(text, " ");
  if (length < sizeof word) memcpy(word, text, length);
  bool known = length < sizeof word && handle(word, text + length, &fd);
  if (fd >= 0) close(fd);
  if (!known) exit(1); /* the server is of another version; it starts one of its own */
}
