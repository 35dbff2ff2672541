/* Connections from inside, and those that the server has made. The server has a copy of each descriptor and speaks with the program; once it has decided, it closes its
   copy (or waits, for the body of an answer), and the bytes are moved here. */
#include "connection.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* By the lower part of the id; the upper part grows, so that an id is never used twice. */
static struct connection *connections[CONNECTIONS_MAX];
static uint64_t next_id = 1;
static size_t connection_count, timed_count;

struct connection *connection_find(uint64_t id) {
  struct connection *connection = connections[id % CONNECTIONS_MAX];
  return connection != NULL && connection->id == id ? connection : NULL;
}

static uint64_t free_id(void) {
  while (connections[next_id % CONNECTIONS_MAX] != NULL) next_id++;
  return next_id++;
}

static bool is_timed(enum state state) { return state != HELD && state != ASKED && state != DIALLED && state != ANSWERED && state != HEARD; }
static bool is_exchange(enum state state) { return state >= SILENT; }

void connection_enter(struct connection *connection, enum state state) {
  if (is_timed(connection->state)) timed_count--;
  if (is_timed(state)) timed_count++;
  connection->state = state;
}

struct connection *connection_add(int fd, struct door *door) {
  struct connection *connection = connection_count < CONNECTIONS_MAX - 1 ? calloc(1, sizeof *connection) : NULL;
  if (connection == NULL) {
    close(fd);
    return NULL;
  }
  connection->inside = (struct source){.fd = fd};
  connection->outside = (struct source){.fd = -1};
  connection->up = connection->down = flow_of(0);
  connection->door = door;
  connection->id = free_id();
  connections[connection->id % CONNECTIONS_MAX] = connection;
  connection_count++;
  return connection;
}

static void tell_gone(const struct connection *connection) {
  if (connection->known) channel_say("gone %" PRIu64, connection->id);
}

void connection_give(struct connection *connection, const uint8_t *preface, size_t length) {
  char text[2 * PREFACE_MAX + 64];
  mover_watch(&connection->inside, 0);
  connection_enter(connection, HELD);
  int at = snprintf(text, sizeof text, "conn %" PRIu64 " %" PRIu32 " ", connection->id, door_number(connection->door));
  for (size_t byte = 0; byte < length; byte++) at += snprintf(text + at, sizeof text - (size_t)at, "%02x", preface[byte]);
  bool given = channel_give(connection->inside.fd, text);
  if (!given) tell_gone(connection);
  connection->known = false;
  if (!given) connection_forget(connection);
}

static void reset_on_close(int fd) {
  struct linger linger = {.l_onoff = 1};
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

void connection_reset(struct connection *connection) {
  reset_on_close(connection->inside.fd);
  reset_on_close(connection->outside.fd);
}

static uint64_t sent(const struct connection *connection) { return connection->sent + connection->up.out; }
static uint64_t received(const struct connection *connection) { return connection->received + connection->down.in; }
/* Grows with every byte that moves. */
static uint64_t all_bytes(const struct connection *connection) {
  return sent(connection) + received(connection) + connection->up.in + connection->down.out + connection->written;
}

void connection_tell_end(const struct connection *connection, bool whole) {
  channel_say("end %" PRIu64 " %" PRIu64 " %" PRIu64 " %d", connection->id, sent(connection), received(connection), whole);
}

void connection_rest(struct connection *connection) {
  flow_end(&connection->up);
  flow_end(&connection->down);
  mover_close(&connection->outside);
  mover_watch(&connection->inside, 0);
  connection_enter(connection, HELD);
}

void connection_stop(struct connection *connection, bool whole) {
  connection_tell_end(connection, whole);
  connection_rest(connection);
}

void connection_forget(struct connection *connection) {
  connection_enter(connection, HELD);
  mover_close(&connection->inside);
  mover_close(&connection->outside);
  bytes_free(&connection->request);
  bytes_free(&connection->tail);
  bytes_free(&connection->answer);
  connections[connection->id % CONNECTIONS_MAX] = NULL;
  connection_count--;
  if (connection->door != NULL) door_left(connection->door);
  free(connection);
}

static void fail(struct connection *connection) {
  if (is_exchange(connection->state)) return exchange_leave(connection);
  connection_reset(connection);
  connection_stop(connection, false);
  tell_gone(connection);
  connection_forget(connection);
}

static int watch(struct connection *connection) {
  const struct flow *up = &connection->up, *down = &connection->down;
  uint32_t inside = (flow_wants_input(up) ? (uint32_t)EPOLLIN : 0u) | (flow_wants_output(down) ? (uint32_t)EPOLLOUT : 0u);
  uint32_t outside = (flow_wants_input(down) ? (uint32_t)EPOLLIN : 0u) | (flow_wants_output(up) ? (uint32_t)EPOLLOUT : 0u);
  return mover_watch(&connection->inside, inside) | mover_watch(&connection->outside, outside);
}

static void move_joined(struct connection *connection) {
  bool good = flow_move(&connection->up, connection->inside.fd, connection->outside.fd) &&
              flow_move(&connection->down, connection->outside.fd, connection->inside.fd) && watch(connection) == 0;
  if (!good) return fail(connection);
  if (!connection->up.shut || !connection->down.shut) return;
  connection_stop(connection, true);
  tell_gone(connection);
  connection_forget(connection);
}

/* The connection stays when the body is whole: the server goes on speaking. */
static void move_body(struct connection *connection) {
  struct flow *down = &connection->down;
  if (!flow_move(down, connection->outside.fd, connection->inside.fd) || watch(connection) != 0) return fail(connection);
  if (down->out == down->most) connection_stop(connection, true);
  else if (down->shut) fail(connection); /* it ended too early */
}

static void move(struct connection *connection) {
  if (connection->state == JOINED) move_joined(connection);
  else if (connection->state == BODY) move_body(connection);
}

static void inside_ready(struct source *source, uint32_t events) {
  (void)events;
  move(container(source, struct connection, inside));
}

static void outside_ready(struct source *source, uint32_t events) {
  (void)events;
  move(container(source, struct connection, outside));
}

static void begin_moving(struct connection *connection, enum state state) {
  connection_enter(connection, state);
  connection->inside.ready = inside_ready;
  connection->outside.ready = outside_ready;
  connection->active_at = monotonic_ms();
  move(connection);
}

void connection_carry(struct connection *connection) { begin_moving(connection, JOINED); }

static void begin(uint64_t id, int outside, enum state state, uint64_t count, int64_t idle_ms) {
  struct connection *connection = connection_find(id);
  if (connection == NULL || connection->state != HELD || outside < 0) {
    if (outside >= 0) close(outside);
    channel_say("end %" PRIu64 " 0 0 0", id);
    /* The socket was closed before it could be sent: without it there is nothing to wait for. */
    if (connection == NULL || connection->state != HELD) return;
    reset_on_close(connection->inside.fd);
    return connection_forget(connection);
  }
  connection->outside = (struct source){.fd = outside};
  connection->up = flow_of(state == JOINED ? UINT64_MAX : 0);
  connection->down = flow_of(count);
  connection->idle_ms = idle_ms;
  connection->told = connection->seen = connection->sent = connection->received = 0;
  begin_moving(connection, state);
}

void connection_hold(uint64_t number, int fd) {
  struct connection *connection = fd < 0 ? NULL : connection_add(fd, NULL);
  channel_say("held %" PRIu64 " %" PRIu64, number, connection == NULL ? 0 : connection->id);
}

void connection_join(uint64_t id, int outside, int64_t idle_ms) { begin(id, outside, JOINED, UINT64_MAX, idle_ms); }

void connection_body(uint64_t id, int outside, uint64_t count, int64_t idle_ms) { begin(id, outside, BODY, count, idle_ms); }

void connection_cut(uint64_t id) {
  struct connection *connection = connection_find(id);
  if (connection != NULL && connection->state != HELD) fail(connection);
}

/* The server has closed its copy. */
void connection_drop(uint64_t id) {
  struct connection *connection = connection_find(id);
  if (connection == NULL) return;
  if (connection->state != HELD) return fail(connection);
  connection_forget(connection);
}

size_t connections_timed(void) { return timed_count; }

static void tick(struct connection *connection, int64_t now) {
  enum state state = connection->state;
  if (state == SILENT || state == DIALLING || state == PARTED || state == HEARING) return exchange_tick(connection, now);
  if (connection->seen != all_bytes(connection)) connection->active_at = now;
  connection->seen = all_bytes(connection);
  if (now - connection->active_at >= connection->idle_ms) return fail(connection);
  uint64_t known = sent(connection) + received(connection);
  if (known == connection->told || channel_crowded()) return;
  connection->told = known;
  channel_say("moved %" PRIu64 " %" PRIu64 " %" PRIu64, connection->id, sent(connection), received(connection));
}

void connections_tick(int64_t now) {
  for (size_t at = 0; timed_count > 0 && at < CONNECTIONS_MAX; at++)
    if (connections[at] != NULL && is_timed(connections[at]->state)) tick(connections[at], now);
}
