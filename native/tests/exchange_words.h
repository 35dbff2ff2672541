/* For fuzz_exchange alone: what the server says to the mover, at right and at wrong times, and what it may expect then. */
#ifndef EXCHANGE_WORDS_H
#define EXCHANGE_WORDS_H

#include "exchange_book.h"

static void listen_to_mover(void);

static char line[LINE_MAX_BYTES];
static size_t line_length;

static bool is(const char *word, const char *other) { return strcmp(word, other) == 0; }

static void put_count(uint64_t number) { line_length += (size_t)sprintf(line + line_length, " %" PRIu64, number); }

/* Bytes by chance at the end of the line; they stay in `text` as well. */
static size_t put_some(void) {
  static const char digits[] = "0123456789abcdef";
  char *from = line + line_length + 1;
  size_t length = 1 + below(once_in(20) ? 40000 : 200);
  line[line_length++] = ' ';
  for (size_t at = 0; at < 2 * length; at++) line[line_length++] = digits[below(16)];
  line[line_length] = '\0';
  return bytes_of(from, text);
}

/* A request that is sent, or a tunnel. The port names the connection. */
static void say_fetch(struct slot *slot, bool tunnels) {
  line_length += (size_t)sprintf(line + line_length, " %s", once_in(20) ? "nowhere" : "127.0.0.1");
  put_count(slot == NULL ? 1 : (uint64_t)(slot - slots) + 1);
  put_count(below(3000));
  put_count(1 + below(9000));
  uint64_t silent_ms = tunnels ? below(6000) : 0;
  put_count(silent_ms);
  if (slot != NULL && slot->book == SHOWN) {
    both_read(slot);
    shut(&slot->origin);
  }
  size_t length = put_some();
  if (slot == NULL || slot->book != SHOWN) return;
  *(tunnels ? &opens : &fetches) += 1;
  slot->book = FETCHING;
  bytes_free(&slot->request);
  add(&slot->request, text, length);
  slot->tunnels = tunnels;
  slot->silent_ms = (int64_t)silent_ms;
  slot->wanted = once_in(2) ? 0 : below(2 * SAID_MAX);
  slot->is_out = slot->is_over = slot->is_reset = slot->marked = slot->goes = slot->carried = slot->joins = false;
  slot->base = slot->log.length = slot->heard = slot->reached = 0;
  slot->sent = slot->received = 0;
  slot->mark = slot->owed.length;
  slot->tunnel = slot->taken + slot->shown;
  slot->left = UINT64_MAX;
}

static void say_reply(struct slot *slot, bool streams) {
  uint64_t count = once_in(3) ? below(40) : once_in(3) ? below(200000) : 0, keep = once_in(3) ? 0 : 1 + below(5000);
  if (!streams) put_count(keep), put_count(count);
  size_t length = put_some();
  if (slot == NULL || slot->book != ANSWER) return;
  add(&slot->owed, text, length);
  slot->book = SENDING;
  slot->streams = streams;
  slot->kept = !streams && keep > 0;
  slot->left = streams ? UINT64_MAX : count;
  owe(slot);
}

/* Said twice, it is nothing; so it is once the request is out. */
static void say_go(struct slot *slot) {
  if (slot->book != FETCHING || slot->goes) return;
  slot->goes = true;
  if (slot->tunnels) add(&slot->owed, slot->request.data, slot->request.length);
  owe(slot);
}

/* What is said before `go` is in time. Later, the server does not know before something moves. */
static void say_carry(struct slot *slot) {
  if (!slot->tunnels || (slot->book != FETCHING && slot->book != SAID)) return;
  if (!slot->carried) carries++;
  slot->carried = true;
  if (slot->book == SAID || !slot->goes) slot->joins = true;
  if (slot->book == SAID) slot->book = CARRIED;
  owe(slot);
}

static void say_more(struct slot *slot) {
  if (slot->book == ANSWER) slot->book = FETCHING;
  if (slot->book == SAID) slot->book = LISTENING;
}

/* Whatever the mover has to say of its end, it says at once. What the server does not know of, or has a copy of, falls in silence. */
static void say_end(struct slot *slot, bool cuts) {
  enum book book = slot->book;
  bool is_told = book != OFFERED && book != GIVEN;
  if (book == GIVEN && cuts) return channel_take(line, line_length);
  channel_take(line, line_length);
  listen_to_mover();
  must(!is_told || slot->book == FALLING);
  if (book == GIVEN) given_reads(slot);
  slot->id = 0;
  slot->book = FALLING;
}

/* While an address is dialled, and the request may have gone, the server does not know whether it gets the connection. */
static void say_give(struct slot *slot) {
  enum book book = slot->book;
  bool is_due = book == SHOWN || book == ODD || book == ANSWER || book == NO_ANSWER || book == SAID || (book == FETCHING && !slot->goes);
  if (is_due || book == FETCHING) slot->book = GIVING;
  channel_take(line, line_length);
  listen_to_mover();
  must(!is_due || slot->book == GIVEN || slot->book == FALLING);
  if (slot->book == GIVING) slot->book = book;
}

/* What does not fit the book has no effect, so the book stays as it is. */
static void say(const char *word, uint64_t id) {
  struct slot *slot = slot_of(id);
  line_length = (size_t)sprintf(line, "\"%s %" PRIu64, word, id);
  if (is(word, "fetch") || is(word, "open")) say_fetch(slot, is(word, "open"));
  else if (is(word, "reply") || is(word, "stream")) say_reply(slot, is(word, "stream"));
  else if (slot != NULL && is(word, "go")) say_go(slot);
  else if (slot != NULL && is(word, "carry")) say_carry(slot);
  else if (slot != NULL && is(word, "more")) say_more(slot);
  line_length += (size_t)sprintf(line + line_length, "\"\n");
  if (slot != NULL && is(word, "give")) return say_give(slot);
  if (slot != NULL && (is(word, "cut") || is(word, "drop"))) return say_end(slot, is(word, "cut"));
  channel_take(line, line_length);
  listen_to_mover();
}

/* A word that fits what the server knows; NULL: it has to wait. */
static const char *right_word(const struct slot *slot) {
  static const char *const right[][3] = {[ODD] = {"give", "give", "drop"}, [ANSWER] = {"reply", "stream", "more"}, [NO_ANSWER] = {"give", "give", "drop"},
                                         [SAID] = {"carry", "more", "give"}, [GIVEN] = {"drop", "drop", "drop"}, [FALLING] = {NULL}};
  if (slot->book == SHOWN) return once_in(6) ? "give" : slot->connects != once_in(6) ? "open" : "fetch";
  if (slot->book == FETCHING && slot->goes) return NULL;
  if (slot->book == FETCHING) return slot->tunnels && !slot->carried && once_in(4) ? "carry" : once_in(20) ? "give" : once_in(2) ? "go" : NULL;
  if (slot->book == SAID && slot->heard < slot->wanted) return "more";
  return right[slot->book][below(3)];
}

static void server_acts(void) {
  static const char *const words[] = {"fetch", "open", "go", "carry", "more", "reply", "stream", "give", "cut", "drop"};
  struct slot *slot = &slots[below(SLOTS)];
  const char *word = right_word(slot);
  if (slot->id == 0) return;
  if (once_in(16)) word = words[below(sizeof words / sizeof *words)];
  if (word == NULL) return;
  if (once_in(12)) say(word, once_in(2) ? slot->id + CONNECTIONS_MAX : 1 + below(2000));
  else say(word, slot->id);
}

#endif
