/* For fuzz_exchange alone: the book in which the server keeps what the mover may say of each connection. What is not in it ends the run. */
#ifndef EXCHANGE_BOOK_H
#define EXCHANGE_BOOK_H

#include "exchange_ends.h"

#include <inttypes.h>

static bool speaks_freely; /* the mover, neither asked nor because of the time */
static size_t acts, ends, gones, fetches, opens, saids, carries, wholes; /* the last: tunnels that ended whole */

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

static void hear_undialled(struct slot *slot) {
  must(slot->book == FETCHING && !slot->is_over);
  undo(slot);
  slot->book = SHOWN;
}

/* A request that went out has had its end. */
static void hear_gone(struct slot *slot) {
  must(slot->book > OFFERED && slot->book != GIVEN);
  if (!slot->is_over) undo(slot);
  gones++;
  slot->book = FALLING;
  slot->id = 0;
}

static void hear_answer(struct slot *slot, const char *rest) {
  must(slot->book == FETCHING && slot->goes && !slot->tunnels);
  size_t length = bytes_of(rest, text);
  sent(slot);
  slot->book = length > 0 ? ANSWER : NO_ANSWER;
  if (length == 0) return;
  must(length <= ANSWER_MAX && is_same(&slot->log, slot->base, text, length));
  must((uint8_t *)memmem(text, length, "\r\n\r\n", 4) == text + length - 4);
  slot->base += length;
}

/* The program speaks in its tunnel. It was told that it may, and nothing has passed; `carry` has come after it began, and was nothing. */
static void hear_first_said(struct slot *slot) {
  must(!slot->joins);
  sent(slot);
  slot->carried = false;
  slot->owed.length = slot->mark + slot->request.length;
  slot->base = 0;
  must(slot->got <= slot->owed.length && slot->reached == 0);
  slot->due = monotonic_ms() + slot->silent_ms;
  program_has_all(slot);
  both_read(slot);
}

static void hear_said(struct slot *slot, const char *rest) {
  must(slot->tunnels && slot->goes && (slot->book == FETCHING || slot->book == LISTENING));
  if (slot->book == FETCHING) hear_first_said(slot);
  size_t length = bytes_of(rest, text);
  must(length > 0 && slot->heard < SAID_MAX && is_same(&slot->said, slot->taken, text, length));
  saids++;
  slot->heard += length;
  slot->taken += length;
  slot->book = SAID;
}

static void hear_moved(struct slot *slot, uint64_t out, uint64_t in) {
  must(slot->goes && !slot->is_over && (slot->carried || !slot->tunnels));
  must(out <= (slot->tunnels ? slot->said.length - slot->tunnel : slot->request.length) && in <= slot->log.length);
  must(out >= slot->reached && out >= slot->sent && in >= slot->received && out + in > slot->sent + slot->received);
  slot->sent = out;
  slot->received = in;
  slot->joins = slot->tunnels;
}

/* What a program says in its tunnel is looked at before its hang-up. */
static bool is_heard(const struct slot *slot) { return slot->taken == slot->said.length || slot->heard >= SAID_MAX || slot->is_tcp; }

/* A tunnel ends whole where all that either side has ever said came to the other one. */
static void hear_end_of_tunnel(struct slot *slot, bool whole) {
  must(slot->book != LISTENING || !speaks_freely || is_heard(slot));
  must(slot->carried || (slot->sent == 0 && slot->received == 0 && !whole));
  if (!whole) return;
  wholes++;
  must(slot->ended && !slot->is_reset && slot->sent == slot->said.length - slot->tunnel && slot->received == slot->log.length);
  program_has_all(slot);
  host_has_all(slot, slot->sent);
  slot->book = OVER;
}

/* It ends whole once all of it is inside, and a counted one not before. */
static void hear_end_of_answer(struct slot *slot, bool whole) {
  if (!whole) return;
  must(slot->book == SENDING && slot->sent == slot->request.length);
  must(slot->streams ? slot->received == slot->log.length : slot->left == 0);
  slot->book = slot->kept ? WAITING : LAST;
}

static void hear_end(struct slot *slot, uint64_t out, uint64_t in, bool whole) {
  must(slot->book >= FETCHING && slot->book < GIVEN && !slot->is_over && slot->goes);
  if (out + in > slot->sent + slot->received) hear_moved(slot, out, in);
  must(out == slot->sent && in == slot->received && out >= slot->reached);
  slot->is_over = true;
  ends++;
  sent(slot);
  both_read(slot);
  if (slot->tunnels) hear_end_of_tunnel(slot, whole);
  else hear_end_of_answer(slot, whole);
  if (!whole && slot->book != GIVING) slot->book = OVER;
  if (whole && !slot->tunnels) shut(&slot->origin);
}

static void hear_given(struct slot *slot, int fd) {
  must(fd >= 0 && (slot->book == OFFERED || slot->book == GIVING));
  if (!slot->is_over) undo(slot);
  slot->given = fd;
  slot->book = GIVEN;
  given_reads(slot);
}

static void hear_ask(struct slot *slot, const char *rest) {
  must(slot->book == OFFERED || slot->book == WAITING);
  slot->shown = bytes_of(rest, text);
  slot->book = slot->shown > 0 ? SHOWN : ODD;
  slot->connects = slot->shown > 0 && text[0] == 'C';
  must(is_same(&slot->said, slot->taken, text, slot->shown));
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
  else if (strcmp(word, "said") == 0) hear_said(slot, rest + 1);
  else if (strcmp(word, "moved") == 0) hear_moved(slot, numbers[0], numbers[1]);
  else if (strcmp(word, "end") == 0) hear_end(slot, numbers[0], numbers[1], numbers[2] == 1);
  else if (strcmp(word, "conn") == 0) hear_given(slot, *fd), *fd = -1;
  else if (strcmp(word, "gone") == 0) hear_gone(slot);
  else must(false);
  acts++;
}

/* An end that is not whole, and that of a tunnel, is the last but one thing that the server hears, at once. */
static void heard_all(void) {
  for (size_t at = 0; at < SLOTS; at++) must(slots[at].book != OVER);
}

/* The mover has looked at the time. */
static void silence_ends(void) {
  for (size_t at = 0; at < SLOTS; at++) must(slots[at].book != LISTENING || monotonic_ms() < slots[at].due);
}

/* What the mover has to look at now and then is counted. A connection may have gone that the server has never heard of, and an address
   may have answered, which then waits for the server. */
static void timers_fit(void) {
  size_t least = 0, most = 0;
  for (size_t at = 0; at < SLOTS; at++) {
    enum book book = slots[at].book;
    bool may = book == OFFERED || book == FETCHING || book == SENDING || book == WAITING || book == LAST || book == LISTENING || book == CARRIED;
    most += may;
    least += may && book != OFFERED && (book != FETCHING || slots[at].goes || slots[at].dialled >= 0);
  }
  must(connections_timed() >= least && connections_timed() <= most);
}

#endif
