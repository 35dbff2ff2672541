/* For fuzz_exchange alone: the connections of a run, and what their programs and hosts may get. What is not so ends the run. */
#ifndef EXCHANGE_ENDS_H
#define EXCHANGE_ENDS_H

#include "../mover/connection.h"
#include "invent.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLOTS 8
#define PATIENCE_MS 5000 /* for bytes that the kernel has taken from one side */

/* What the server knows of a connection. ODD: what came is not plain. LAST: the answer was whole, and no request is waited for.
   SAID: it was shown what the program says in its tunnel. LISTENING: it has asked for more of that. CARRIED: it has let that through.
   OVER: an end was told, and nothing since. FALLING: it was dropped, or is gone. */
enum book { NONE, OFFERED, SHOWN, ODD, FETCHING, ANSWER, NO_ANSWER, SENDING, WAITING, LAST, SAID, LISTENING, CARRIED, GIVING, GIVEN, OVER, FALLING };
struct slot {
  uint64_t id;
  enum book book;
  int program, origin, given;              /* -1: closed */
  int dialled;                             /* the mover's socket to a host that has not answered yet; -1: none */
  struct source *waiting;                  /* it, in the loop */
  bool is_tcp;                             /* inside */
  bool marked, pressed, ended;             /* the host, the program has sent an urgent byte; the program says no more */
  bool streams, kept;
  bool connects, tunnels;                  /* the server is shown a CONNECT, opens a tunnel */
  bool goes, carried, joins;               /* the server has said `go`, `carry`; the last one in time, for sure */
  bool is_out, is_over, is_reset;          /* a request went out; the mover has told its end; the host was reset */
  struct bytes said, log, owed;            /* by the program; by the host; to the program */
  struct bytes request;                    /* as it goes to the host; of a tunnel, what the program is told */
  size_t taken, shown;                     /* of `said`: out of the socket; shown, and still in it */
  size_t base, got;                        /* of `log`: owed; of `owed`: had by the program */
  size_t tunnel, heard, wanted;            /* where in `said` the tunnel begins; shown of it; what the server wants to see first */
  size_t reached, mark;                    /* had by the host; in `owed`, before the request */
  int64_t silent_ms, due;                  /* how long the program may take to say it; when that is over, at the latest */
  uint64_t left, sent, received;           /* the last two as the mover has told them */
};

static struct slot slots[SLOTS];
static uint8_t text[1 << 18];

#define must(condition) ((condition) ? (void)0 : fail(#condition, __FILE__, __LINE__))

static void fail(const char *what, const char *file, int line) {
  fprintf(stderr, "not so in line %d of %s: %s\n", line, file, what);
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

static bool is_same(const struct bytes *bytes, size_t from, const uint8_t *data, size_t length) {
  return from + length <= bytes->length && (length == 0 || memcmp(data, bytes->data + from, length) == 0);
}

/* What the host says now goes to the program, as far as the server let it. */
static void owe(struct slot *slot) {
  size_t more = slot->log.length - slot->base;
  if (slot->tunnels ? !slot->goes || !slot->carried : slot->book != SENDING) return;
  if (more > slot->left) more = (size_t)slot->left;
  add(&slot->owed, slot->log.data + slot->base, more);
  slot->base += more;
  slot->left -= more;
}

/* One piece of it. False: nothing is there. */
static bool program_reads(struct slot *slot, size_t most) {
  ssize_t count = slot->program < 0 ? 0 : recv(slot->program, text, most, MSG_DONTWAIT);
  if (count <= 0) return false;
  must(is_same(&slot->owed, slot->got, text, (size_t)count));
  slot->got += (size_t)count;
  return true;
}

/* Before the server has said `go`, nothing reaches the host; in a tunnel, only what is carried. */
static bool host_reads(struct slot *slot, size_t most) {
  ssize_t count = slot->origin < 0 ? (errno = EAGAIN, -1) : recv(slot->origin, text, most, MSG_DONTWAIT);
  /* What was cut in a tunnel does not look as if it were whole. */
  if (count == 0) must(!slot->tunnels || slot->reached == 0 || slot->ended);
  if (count < 0 && errno != EAGAIN) slot->is_reset = true, shut(&slot->origin);
  if (count <= 0) return false;
  must(slot->goes && (slot->carried || !slot->tunnels));
  must(slot->tunnels ? is_same(&slot->said, slot->tunnel + slot->reached, text, (size_t)count) : is_same(&slot->request, slot->reached, text, (size_t)count));
  slot->reached += (size_t)count;
  must(!slot->is_over || slot->reached <= slot->sent);
  return true;
}

static void both_read(struct slot *slot) {
  while (program_reads(slot, sizeof text)) {}
  while (host_reads(slot, sizeof text)) {}
}

/* False: it was waited for long enough. */
static bool waits(size_t *tries) { return poll(NULL, 0, 1) == 0 && ++*tries < PATIENCE_MS; }

/* All of it was sent before its end was told. */
static void program_has_all(struct slot *slot) {
  for (size_t tries = 0; slot->program >= 0 && slot->got < slot->owed.length;) must(program_reads(slot, sizeof text) || waits(&tries));
}

static void host_has_all(struct slot *slot, uint64_t count) {
  for (size_t tries = 0; slot->origin >= 0 && slot->reached < count;) must(host_reads(slot, sizeof text) || waits(&tries));
}

/* The server reads on its socket all that is left of what the program said, and nothing twice. A program that hangs up and has not read
   its answer takes its words back. */
static void given_reads(struct slot *slot) {
  bool is_cut = slot->program < 0 && slot->is_tcp;
  ssize_t count;
  for (size_t tries = 0; (count = recv(slot->given, text, sizeof text, MSG_DONTWAIT)) > 0 || (slot->taken < slot->said.length && !is_cut);) {
    must(count > 0 ? is_same(&slot->said, slot->taken, text, (size_t)count) : count < 0 && waits(&tries));
    if (count > 0) slot->taken += (size_t)count;
  }
}

/* The request was not sent, and nothing that the server let through has happened. */
static void undo(struct slot *slot) {
  both_read(slot);
  must(!slot->is_out && slot->reached == 0 && slot->got <= slot->mark);
  slot->owed.length = slot->mark;
  slot->goes = slot->carried = slot->tunnels = false;
  slot->is_over = true;
}

static void forget(struct slot *slot) {
  both_read(slot);
  shut(&slot->origin);
  shut(&slot->given);
  shut(&slot->program);
  bytes_free(&slot->said);
  bytes_free(&slot->log);
  bytes_free(&slot->owed);
  bytes_free(&slot->request);
  *slot = (struct slot){.program = -1, .origin = -1, .given = -1, .dialled = -1};
}

#endif
