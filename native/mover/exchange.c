/* Plain requests, one after the other on a connection from inside. The server is shown a request, and says what is sent instead of it.
   An answer that is not simple (answer.c) is shown in the same way. Else nothing of HTTP is understood here: this file looks for the
   empty line that ends a head. A request that does not look simple, the server gets whole and unread. */
#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_END "\r\n\r\n"

static void inside_ready(struct source *source, uint32_t events);
static void outside_ready(struct source *source, uint32_t events);

static bool passing(void) { return errno == EAGAIN || errno == EINTR; }

/* Bytes up to the end of the first head; 0 if it is not whole. */
static size_t head_length(const uint8_t *data, size_t length) {
  const uint8_t *end = length == 0 ? NULL : memmem(data, length, HEAD_END, strlen(HEAD_END));
  return end == NULL ? 0 : (size_t)(end - data) + strlen(HEAD_END);
}

int exchange_watch(struct connection *connection, uint32_t inside, uint32_t outside) {
  return mover_watch(&connection->inside, inside | EPOLLRDHUP) | mover_watch(&connection->outside, outside);
}

static bool has_outside(const struct connection *connection) {
  enum state state = connection->state;
  return state == SENT || state == ANSWERED || state == REPLYING || state == HEARING || state == HEARD || state == SAYING;
}

static void tell_end(struct connection *connection) {
  if (connection->ended) connection_tell_end(connection, true);
  connection->ended = false;
}

static void leave(struct connection *connection) {
  tell_end(connection);
  if (has_outside(connection)) connection_stop(connection, false);
  if (connection->known) channel_say("gone %" PRIu64, connection->id);
  connection_forget(connection);
}

void exchange_leave(struct connection *connection) {
  connection_reset(connection);
  leave(connection);
}

/* What came so far stays in the socket: the server may want to read it. */
static void show(struct connection *connection, const uint8_t *request, size_t length) {
  char text[64];
  snprintf(text, sizeof text, "ask %" PRIu64 " %" PRIu32 " ", connection->id, door_number(connection->door));
  tell_end(connection);
  connection->known = true;
  connection->shown = length;
  connection_enter(connection, ASKED);
  channel_show(text, request, length);
  if (exchange_watch(connection, 0, 0) != 0) leave(connection);
}

static bool begins(const uint8_t *data, size_t length, const char *word) { return length > strlen(word) && memcmp(data, word, strlen(word)) == 0; }

static bool looks_plain(const uint8_t *data, size_t length) {
  bool known = begins(data, length, "GET ") || begins(data, length, "HEAD ") || begins(data, length, "CONNECT ");
  return known && length < REQUEST_MAX && head_length(data, length) == length;
}

/* False: nothing has come yet. */
static bool looked(struct connection *connection) {
  uint8_t data[REQUEST_MAX];
  ssize_t count = recv(connection->inside.fd, data, sizeof data, MSG_PEEK | MSG_DONTWAIT);
  if (count < 0 && passing()) return false;
  if (count > 0 && looks_plain(data, (size_t)count)) show(connection, data, (size_t)count);
  else if (!connection->known) connection_give(connection, NULL, 0);
  else if (count > 0) show(connection, NULL, 0);
  else leave(connection);
  return true;
}

/* Until the next request comes. */
static void await(struct connection *connection, int64_t within_ms) {
  connection_enter(connection, SILENT);
  connection->due = monotonic_ms() + within_ms;
  if (exchange_watch(connection, EPOLLIN, 0) != 0) leave(connection);
}

void exchange_offer(struct connection *connection) {
  connection->inside.ready = inside_ready;
  if (!looked(connection)) await(connection, REQUEST_MS);
}

static bool address_of(const struct exchange_request *request, struct sockaddr_storage *address, socklen_t *length) {
  struct sockaddr_in *four = (struct sockaddr_in *)address;
  struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;
  memset(address, 0, sizeof *address);
  four->sin_port = htons(request->port);
  four->sin_family = AF_INET;
  *length = sizeof *four;
  if (inet_pton(AF_INET, request->address, &four->sin_addr) == 1) return true;
  six->sin6_family = AF_INET6;
  *length = sizeof *six;
  return inet_pton(AF_INET6, request->address, &six->sin6_addr) == 1;
}

static void undialled(struct connection *connection) {
  mover_close(&connection->outside);
  bytes_free(&connection->request);
  connection_enter(connection, ASKED);
  channel_say("undialled %" PRIu64, connection->id);
}

static void unanswered(struct connection *connection) {
  connection_enter(connection, ANSWERED);
  mover_watch(&connection->outside, 0);
  connection->head = 0;
  channel_say("answer %" PRIu64 " ", connection->id);
}

/* The request leaves the socket of the program when it goes out. */
static void send_request(struct connection *connection) {
  static uint8_t passed[REQUEST_MAX];
  struct bytes *request = &connection->request;
  connection_enter(connection, SENT);
  connection->active_at = monotonic_ms();
  if (recv(connection->inside.fd, passed, connection->shown, MSG_DONTWAIT) != (ssize_t)connection->shown) return exchange_leave(connection);
  if (connection->tunnels) return tunnel_begin(connection);
  /* A socket that was made a moment ago has room for it. */
  ssize_t count = send(connection->outside.fd, request->data, request->length, MSG_NOSIGNAL | MSG_DONTWAIT);
  connection->sent = count > 0 ? (uint64_t)count : 0;
  bool whole = count == (ssize_t)request->length;
  bytes_free(request);
  if (!whole) return unanswered(connection);
  if (exchange_watch(connection, 0, EPOLLIN) != 0) exchange_leave(connection);
}

static void dialled(struct connection *connection) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(connection->outside.fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return undialled(connection);
  if (connection->goes) return send_request(connection);
  mover_watch(&connection->outside, 0);
  connection_enter(connection, DIALLED);
}

static void dial(struct connection *connection, const struct exchange_request *request) {
  struct sockaddr_storage address;
  socklen_t length;
  int fd = address_of(request, &address, &length) ? socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) : -1;
  if (fd < 0) return undialled(connection);
  connection->outside = (struct source){.fd = fd, .ready = outside_ready};
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd, (struct sockaddr *)&address, length) == 0) return dialled(connection);
  if (errno != EINPROGRESS || mover_watch(&connection->outside, EPOLLOUT) != 0) return undialled(connection);
  connection_enter(connection, DIALLING);
  connection->due = monotonic_ms() + request->within_ms;
}

/* What is not known any more has hung up; the server hears of it. */
void exchange_fetch(uint64_t id, const struct exchange_request *request) {
  struct connection *connection = connection_find(id);
  if (connection == NULL || connection->state != ASKED || connection->shown == 0) return;
  connection->up = connection->down = flow_of(0);
  connection->sent = connection->received = connection->written = connection->told = connection->seen = 0;
  connection->idle_ms = request->idle_ms;
  connection->keep_ms = request->keep_ms;
  connection->tunnels = request->tunnels;
  connection->goes = connection->carried = false;
  bytes_free(&connection->answer);
  bytes_free(&connection->tail);
  if (bytes_add(&connection->request, request->data, request->length) && bytes_add(&connection->tail, request->tail, request->tail_length))
    dial(connection, request);
  else undialled(connection);
}

void exchange_go(uint64_t id) {
  struct connection *connection = connection_find(id);
  if (connection == NULL) return;
  connection->goes = true;
  if (connection->state == DIALLED) send_request(connection);
}

/* What the program still says is not read. Were that in the socket when it is closed, the kernel would throw away the end of the
   answer: a program may have sent its next request, and be slow to read. */
static void part(struct connection *connection) {
  shutdown(connection->inside.fd, SHUT_WR);
  connection_enter(connection, PARTED);
  connection->due = monotonic_ms() + PARTING_MS;
  if (exchange_watch(connection, EPOLLIN, 0) != 0) leave(connection);
}

static void drain(struct connection *connection) {
  static uint8_t unread[16 << 10];
  ssize_t count = recv(connection->inside.fd, unread, sizeof unread, MSG_DONTWAIT);
  if (count == 0 || (count < 0 && !passing())) leave(connection);
}

/* The server is told a little later: woken now, it would often take the processor that the program has been woken on. The program
   mostly hangs up or asks for more at once, and then one message more costs nothing. */
static void answered(struct connection *connection) {
  connection_rest(connection);
  connection->ended = true;
  bytes_free(&connection->answer);
  if (connection->keep_ms > 0) await(connection, connection->keep_ms);
  else part(connection);
}

static bool is_whole(const struct connection *connection) {
  const struct flow *down = &connection->down;
  return connection->answer.length == 0 && (down->out == down->most || down->shut);
}

static void move_reply(struct connection *connection) {
  struct bytes *answer = &connection->answer;
  struct flow *down = &connection->down;
  if (answer->length > 0) {
    ssize_t count = send(connection->inside.fd, answer->data, answer->length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && !passing()) return exchange_leave(connection);
    if (count > 0) {
      bytes_drop(answer, (size_t)count);
      connection->written += (uint64_t)count;
    }
  }
  bool moves = answer->length == 0 && down->out < down->most;
  if (moves && !flow_move(down, connection->outside.fd, connection->inside.fd)) return exchange_leave(connection);
  /* It ended too early. */
  if (down->shut && down->most != UINT64_MAX && down->out < down->most) return exchange_leave(connection);
  if (is_whole(connection)) return answered(connection);
  bool full = answer->length > 0 || flow_wants_output(down), wants = answer->length == 0 && flow_wants_input(down);
  if (exchange_watch(connection, full ? EPOLLOUT : 0, wants ? EPOLLIN : 0) != 0) exchange_leave(connection);
}

/* A new head takes the place of the one that came; what came of the body follows it. */
static void begin_reply(struct connection *connection, struct bytes head, uint64_t count) {
  struct bytes *answer = &connection->answer;
  size_t came = answer->length - connection->head;
  if (came > count) came = (size_t)count;
  bool good = bytes_add(&head, answer->data + connection->head, came);
  bytes_free(answer);
  *answer = head;
  if (!good) return exchange_leave(connection);
  connection->down = flow_of(count == UINT64_MAX ? UINT64_MAX : count - came);
  connection->active_at = monotonic_ms();
  connection_enter(connection, REPLYING);
  move_reply(connection);
}

/* Once the head of the answer is whole: what is simple goes on, all else is shown. */
static void look_for_head(struct connection *connection) {
  struct bytes *answer = &connection->answer, made = {0};
  uint64_t count;
  connection->head = head_length(answer->data, answer->length);
  if (connection->head == 0 && answer->length >= ANSWER_MAX) return unanswered(connection);
  if (connection->head == 0) return;
  if (connection->tail.length > 0 && answer_made(answer->data, connection->head, &connection->tail, &made, &count)) return begin_reply(connection, made, count);
  bytes_free(&made);
  char text[64];
  connection_enter(connection, ANSWERED);
  mover_watch(&connection->outside, 0);
  snprintf(text, sizeof text, "answer %" PRIu64 " ", connection->id);
  channel_show(text, answer->data, connection->head);
}

static void receive_answer(struct connection *connection) {
  uint8_t data[4096];
  size_t room = ANSWER_MAX - connection->answer.length;
  ssize_t count = recv(connection->outside.fd, data, room < sizeof data ? room : sizeof data, MSG_DONTWAIT);
  if (count < 0 && passing()) return;
  if (count <= 0 || !bytes_add(&connection->answer, data, (size_t)count)) return unanswered(connection);
  connection->received += (uint64_t)count;
  look_for_head(connection);
}

void exchange_more(uint64_t id) {
  struct connection *connection = connection_find(id);
  if (connection != NULL && connection->state == HEARD) return tunnel_await(connection);
  if (connection == NULL || connection->state != ANSWERED || connection->head == 0) return;
  bytes_drop(&connection->answer, connection->head);
  connection_enter(connection, SENT);
  connection->active_at = monotonic_ms();
  if (mover_watch(&connection->outside, EPOLLIN) != 0) exchange_leave(connection);
  else look_for_head(connection);
}

void exchange_reply(uint64_t id, const struct exchange_reply *reply) {
  struct connection *connection = connection_find(id);
  struct bytes head = {0};
  if (connection == NULL || connection->state != ANSWERED || connection->head == 0) return;
  connection->keep_ms = reply->keep_ms;
  if (bytes_add(&head, reply->data, reply->length)) begin_reply(connection, head, reply->count);
  else exchange_leave(connection);
}

void exchange_give(uint64_t id) {
  struct connection *connection = connection_find(id);
  bool waits = connection != NULL && (connection->state == ASKED || connection->state == DIALLING || connection->state == DIALLED);
  if (!waits && (connection == NULL || (connection->state != ANSWERED && connection->state != HEARD))) return;
  if (!waits) connection_stop(connection, false);
  mover_close(&connection->outside);
  bytes_free(&connection->request);
  bytes_free(&connection->answer);
  connection_give(connection, NULL, 0);
}

static void inside_ready(struct source *source, uint32_t events) {
  struct connection *connection = container(source, struct connection, inside);
  bool over = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
  if (connection->state == SILENT) {
    /* What is silent and hangs up may have said something before. */
    if (!looked(connection) && over) leave(connection);
  } else if (connection->state == PARTED) {
    drain(connection);
  } else if (connection->state == HEARING) {
    tunnel_hear(connection);
  } else if (over) {
    exchange_leave(connection);
  } else if (connection->state == REPLYING) {
    move_reply(connection);
  }
}

static void outside_ready(struct source *source, uint32_t events) {
  (void)events;
  struct connection *connection = container(source, struct connection, outside);
  if (connection->state == DIALLING) dialled(connection);
  else if (connection->state == SENT) receive_answer(connection);
  else if (connection->state == REPLYING) move_reply(connection);
  else if (connection->state == SAYING) tunnel_say(connection);
}

void exchange_tick(struct connection *connection, int64_t now) {
  tell_end(connection);
  if (now < connection->due) return;
  if (connection->state == DIALLING) return undialled(connection);
  if (connection->known) return leave(connection);
  connection_give(connection, NULL, 0);
}
