/* The head of an answer that is simple in every line: it is written anew here, so that no answer of a host waits for the server.
   What is not simple, the server reads and writes. */
#include "parts.h"

#include <string.h>
#include <strings.h>

/* A piece of the head. */
struct text {
  const char *start;
  size_t length;
};

/* Between two neighbours (RFC 9110, 7.6.1), and what is for the proxy alone; as in the server's exchange.ts. */
static const char *const hops[] = {"connection", "proxy-connection", "keep-alive", "te", "trailer", "upgrade", "http2-settings", "expect", "proxy-authorization", "proxy-authenticate"};

static bool is(struct text text, const char *word) { return text.length == strlen(word) && strncasecmp(text.start, word, text.length) == 0; }

static bool is_hop(struct text name) {
  for (size_t at = 0; at < sizeof hops / sizeof hops[0]; at++)
    if (is(name, hops[at])) return true;
  return false;
}

static bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

static bool in_name(char letter) {
  return is_digit(letter) || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter != '\0' && strchr("!#$%&'*+.^_`|~-", letter) != NULL);
}

static bool is_printed(struct text text) {
  for (size_t at = 0; at < text.length; at++)
    if ((text.start[at] < ' ' || text.start[at] > '~') && text.start[at] != '\t') return false;
  return true;
}

/* Takes the next line off the text; its end is CR LF. */
static bool next_line(struct text *rest, struct text *line) {
  const char *end = rest->length == 0 ? NULL : memmem(rest->start, rest->length, "\r\n", 2);
  if (end == NULL) return false;
  *line = (struct text){.start = rest->start, .length = (size_t)(end - rest->start)};
  *rest = (struct text){.start = end + 2, .length = rest->length - line->length - 2};
  return is_printed(*line);
}

/* An answer that has a body: of 204 and 304 and of interim answers, the length says something else. */
static bool has_body(struct text line) {
  const char *text = line.start;
  if (line.length < 12 || memcmp(text, "HTTP/1.1 ", 9) != 0) return false;
  if (text[9] < '2' || text[9] > '5' || !is_digit(text[10]) || !is_digit(text[11])) return false;
  if (memcmp(text + 9, "204", 3) == 0 || memcmp(text + 9, "304", 3) == 0) return false;
  return line.length == 12 || text[12] == ' ';
}

static struct text trimmed(struct text text) {
  while (text.length > 0 && (text.start[0] == ' ' || text.start[0] == '\t')) text = (struct text){text.start + 1, text.length - 1};
  while (text.length > 0 && (text.start[text.length - 1] == ' ' || text.start[text.length - 1] == '\t')) text.length--;
  return text;
}

static bool number_of(struct text text, uint64_t *value) {
  if (text.length == 0 || text.length > 15) return false;
  *value = 0;
  for (size_t at = 0; at < text.length; at++) {
    if (!is_digit(text.start[at])) return false;
    *value = 10 * *value + (uint64_t)(text.start[at] - '0');
  }
  return true;
}

static bool add_line(struct bytes *made, struct text line) {
  return bytes_add(made, (const uint8_t *)line.start, line.length) && bytes_add(made, (const uint8_t *)"\r\n", 2);
}

/* Keeps or drops one header; false if it is not simple. */
static bool pass(struct text line, struct bytes *made, uint64_t *count, bool *counted) {
  struct text name = {.start = line.start, .length = 0};
  while (name.length < line.length && in_name(line.start[name.length])) name.length++;
  if (name.length == 0 || name.length == line.length || line.start[name.length] != ':') return false;
  struct text value = trimmed((struct text){line.start + name.length + 1, line.length - name.length - 1});
  if (is(name, "transfer-encoding")) return false;
  if (is(name, "connection") && !is(value, "close") && !is(value, "keep-alive")) return false;
  if (is(name, "content-length")) {
    if (*counted || !number_of(value, count)) return false;
    *counted = true;
  }
  return is_hop(name) || add_line(made, line);
}

bool answer_made(const uint8_t *head, size_t length, const struct bytes *tail, struct bytes *made, uint64_t *count) {
  struct text rest = {.start = (const char *)head, .length = length}, line;
  bool counted = false;
  if (!next_line(&rest, &line) || !has_body(line) || !add_line(made, line)) return false;
  while (next_line(&rest, &line)) {
    if (line.length == 0) return counted && rest.length == 0 && bytes_add(made, tail->data, tail->length) && bytes_add(made, (const uint8_t *)"\r\n", 2);
    if (!pass(line, made, count, &counted)) return false;
  }
  return false;
}
