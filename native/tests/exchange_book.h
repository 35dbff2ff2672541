/* For fuzz_exchange alone: the book in which the server keeps what the mover may say of each connection, and what its program may get.
   What is not in it ends the run. */
#ifndef EXCHANGE_BOOK_H
#define EXCHANGE_BOOK_H

#include "../mover/connection.h"
#include "invent.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLOTS 8

/* What the server knows of a connection. ODD: what came is not plain. LAST: the answer was whole, and no request is waited for.
   FALLING: it was cut or dropped, or is gone. */
enum book { NONE, OFFERED, SHOWN, ODD, FETCHING, ANSWER, NO_ANSWER, SENDING, WAITING, LAST, GIVING, GIVEN, FALLING };
struct slot {
  uint64_t id;
  enum book book;
  int program, origin, given; /* -1: closed */
  bool streams, kept, marked;
  bool is_out, is_over; /* a request went out; the mover has told its end */
  struct bytes said, log, owed; /* by the program; by the host; to the program */
  size_t taken, shown, base, got, request;
  uint64_t left;
};

static struct slot slots[SLOTS];
static size_t acts, ends, gones, fetches;
static uint8_t text[1 << 18];

#define must(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))

static void fail(const char *what, int line) {
  fprintf(stderr, "not so in line %d: %s\n", line, what);
  abort();
}

static void shut(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static void add(struct bytes *bytes, const void *data, size_t length) { must(bytes_add(bytes, data, length)); }

static struct slot *slot_of(uint64_t id) {
  for (size_t at = 0; at < SLOTS; at++)
    if (slots[at].book != NONE && slots[at].id == id) return &slots[at];
  return NULL;
}

static int digit(char letter) {
  must((letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f'));
  return letter <= '9' ? letter - '0' : letter - 'a' + 10;
}

static size_t bytes_of(const char *from, uint8_t *to) {
  size_t length = strlen(from) / 2;
  for (size_t at = 0; at < length; at++) to[at] = (uint8_t)(digit(from[2 * at]) << 4 | digit(from[2 * at + 1]));
  return length;
}

/* The request has left the socket of the program. */
static void sent(struct slot *slot) {
  slot->taken += slot->shown;
  slot->shown = 0;
  slot->is_out = true;
}

/* What the host says now goes to the program, as far as the server let it. */
static void owe(struct slot *slot) {
  size_t more = slot->log.length - slot->base;
  if (slot->book != SENDING) return;
  if (more > slot->left) more = (size_t)slot->left;
  add(&slot->owed, slot->log.data + slot->base, more);
  slot->base += more;
  slot->left -= more;
}

static void hear_undialled(struct slot *slot) {
  must(slot->book == FETCHING && !slot->is_out && !slot->is_over);
  slot->is_over = true;
  slot->book = SHOWN;
}

/* A request that went out has had its end. */
static void hear_gone(struct slot *slot) {
  char byte;
  bool is_out = slot->is_out || (slot->origin >= 0 && recv(slot->origin, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0);
  must(slot->book > OFFERED && slot->book != GIVEN && (slot->is_over || !is_out));
  gones++;
  slot->book = FALLING;
  slot->id = 0;
}

static void forget(struct slot *slot) {
  shut(&slot->origin);
  shut(&slot->given);
  shut(&slot->program);
  bytes_free(&slot->said);
  bytes_free(&slot->log);
  bytes_free(&slot->owed);
  *slot = (struct slot){.program = -1, .origin = -1, .given = -1};
}

static void hear_answer(struct slot *slot, const char *rest) {
  must(slot->book == FETCHING);
  size_t length = bytes_of(rest, text);
  sent(slot);
  slot->book = length > 0 ? ANSWER : NO_ANSWER;
  if (length == 0) return;
  must(length <= ANSWER_MAX && slot->base + length <= slot->log.length && memcmp(text, slot->log.data + slot->base, length) == 0);
  must((uint8_t *)memmem(text, length, "\r\n\r\n", 4) == text + length - 4);
  slot->base += length;
}

static void hear_end(struct slot *slot, uint64_t out, uint64_t in, bool whole) {
  must(slot->book >= FETCHING && !slot->is_over);
  must(out <= slot->request && in <= slot->log.length);
  slot->is_over = true;
  ends++;
  sent(slot);
  if (slot->book != SENDING) must(!whole);
  if (!whole) return;
  /* It ends whole once all of it is inside, and a counted one not before. */
  must(slot->streams ? in == slot->log.length : slot->left == 0);
  slot->book = slot->kept ? WAITING : LAST;
  shut(&slot->origin);
}

static void hear_given(struct slot *slot, int fd) {
  uint8_t data[1 << 14];
  must(fd >= 0 && slot->is_over && (slot->book == OFFERED || slot->book == GIVING));
  slot->given = fd;
  slot->book = GIVEN;
  /* Nothing that the program said is lost, and nothing comes twice. */
  for (ssize_t count; (count = recv(fd, data, sizeof data, MSG_DONTWAIT)) > 0; slot->taken += (size_t)count)
    must(slot->taken + (size_t)count <= slot->said.length && memcmp(data, slot->said.data + slot->taken, (size_t)count) == 0);
}

static void hear_ask(struct slot *slot, const char *rest) {
  must(slot->book == OFFERED || slot->book == WAITING);
  slot->shown = bytes_of(rest, text);
  slot->book = slot->shown > 0 ? SHOWN : ODD;
  must(slot->taken + slot->shown <= slot->said.length && memcmp(text, slot->said.data + slot->taken, slot->shown) == 0);
  must(slot->shown == 0 || (uint8_t *)memmem(text, slot->shown, "\r\n\r\n", 4) == text + slot->shown - 4);
}

static void hear(char *line, int *fd) {
  char word[16], *message = strstr(line, "\"msg\":\"");
  uint64_t id, numbers[3] = {0};
  int at = 0;
  line = message != NULL ? message + 7 : line + 1;
  *strchr(line, '"') = '\0';
  must(sscanf(line, "%15s %" SCNu64 "%n", word, &id, &at) == 2);
  char *rest = line + at;
  struct slot *slot = slot_of(id);
  must(slot != NULL);
  sscanf(rest, "%" SCNu64 " %" SCNu64 " %" SCNu64, &numbers[0], &numbers[1], &numbers[2]);
  if (strcmp(word, "ask") == 0) hear_ask(slot, rest + strlen(" 1 "));
  else if (strcmp(word, "undialled") == 0) hear_undialled(slot);
  else if (strcmp(word, "answer") == 0) hear_answer(slot, rest + 1);
  else if (strcmp(word, "moved") == 0) must(numbers[0] <= slot->request && numbers[1] <= slot->log.length && !slot->is_over);
  else if (strcmp(word, "end") == 0) hear_end(slot, numbers[0], numbers[1], numbers[2] == 1);
  else if (strcmp(word, "conn") == 0) hear_given(slot, *fd), *fd = -1;
  else if (strcmp(word, "gone") == 0) hear_gone(slot);
  else must(false);
  acts++;
}

#endif
