/* Tunnels of which the server has neither side. It is shown the request, names the address, and sees what the program says first:
   where that is as it should be, both sides are joined here. */
#include "connection.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

void tunnel_say(struct connection *connection) {
  struct bytes *said = &connection->answer;
  ssize_t count = said->length == 0 ? 0 : send(connection->outside.fd, said->data, said->length, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0 && errno != EAGAIN && errno != EINTR) return exchange_leave(connection);
  if (count > 0) {
    connection->sent += (uint64_t)count;
    bytes_drop(said, (size_t)count);
  }
  if (said->length > 0) {
    if (mover_watch(&connection->outside, EPOLLOUT) != 0) exchange_leave(connection);
    return;
  }
  bytes_free(said);
  connection->up = connection->down = flow_of(UINT64_MAX);
  connection_carry(connection);
}

/* Nothing is read meanwhile: it would have to wait behind what goes out now. */
static void carry(struct connection *connection) {
  connection->active_at = monotonic_ms();
  connection_enter(connection, SAYING);
  mover_watch(&connection->inside, 0);
  tunnel_say(connection);
}

void tunnel_await(struct connection *connection) {
  connection_enter(connection, HEARING);
  if (exchange_watch(connection, EPOLLIN, 0) != 0) exchange_leave(connection);
}

void tunnel_begin(struct connection *connection) {
  struct bytes *told = &connection->request;
  ssize_t count = send(connection->inside.fd, told->data, told->length, MSG_NOSIGNAL | MSG_DONTWAIT);
  bool whole = count == (ssize_t)told->length;
  bytes_free(told);
  if (!whole) return exchange_leave(connection);
  if (connection->carried) return carry(connection);
  connection->due = monotonic_ms() + connection->keep_ms;
  tunnel_await(connection);
}

/* While the server looks, nothing more is read: a program that hangs up is found when it is moved. */
void tunnel_hear(struct connection *connection) {
  uint8_t data[16 << 10];
  char text[64];
  ssize_t count = recv(connection->inside.fd, data, sizeof data, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0 || connection->answer.length >= SAID_MAX || !bytes_add(&connection->answer, data, (size_t)count)) return exchange_leave(connection);
  connection_enter(connection, HEARD);
  mover_watch(&connection->inside, 0);
  snprintf(text, sizeof text, "said %" PRIu64 " ", connection->id);
  channel_show(text, data, (size_t)count);
}

void tunnel_carry(uint64_t id) {
  struct connection *connection = connection_find(id);
  if (connection == NULL || !connection->tunnels) return;
  connection->carried = true;
  if (connection->state == HEARD) carry(connection);
}
