/* Connections to process 1: frames in, frames out, never waiting for either. */
#include "channel.h"
#include "../commands/commands.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static size_t open_connections;

size_t connection_count(void) { return open_connections; }

void packet_bytes(struct packet *packet, const char *data, size_t length) {
  if (length > sizeof packet->data - packet->length) return;
  memcpy(packet->data + packet->length, data, length);
  packet->length += length;
}

void packet_put(struct packet *packet, const char *key, const char *format, ...) {
  size_t room = sizeof packet->data - packet->length;
  char *at = packet->data + packet->length;
  int head = snprintf(at, room, "%s=", key);
  if (head < 0 || (size_t)head >= room) return;
  va_list arguments;
  va_start(arguments, format);
  int tail = vsnprintf(at + head, room - (size_t)head, format, arguments);
  va_end(arguments);
  if (tail < 0 || (size_t)tail >= room - (size_t)head) return;
  packet->length += (size_t)head + (size_t)tail + 1;
}

struct connection *connection_open(int fd) {
  struct connection *connection = calloc(1, sizeof *connection);
  if (connection == NULL) return NULL;
  connection->source = (struct source){.fd = fd, .ready = connection_ready};
  if (source_watch(&connection->source, EPOLLIN) != 0) {
    free(connection);
    return NULL;
  }
  open_connections++;
  return connection;
}

void connection_close(struct connection *connection) {
  if (connection->source.fd < 0) return;
  source_close(&connection->source);
  open_connections--;
  command_detach(connection);
  queue_free(&connection->in);
  queue_free(&connection->out);
  retire(&connection->source);
}

int connection_release(struct connection *connection, struct queue *rest) {
  if (connection->out.length > 0 || connection->source.fd < 0) return -1;
  source_watch(&connection->source, 0);
  int fd = connection->source.fd;
  *rest = connection->in;
  connection->in = (struct queue){0};
  connection->source.fd = -1;
  open_connections--;
  retire(&connection->source);
  return fd;
}

/* Closing at once would break the pipe of a client that still sends, before it has read the answer: the end is told,
   and what still comes is thrown away until the client closes. */
static void say_end(struct connection *connection) {
  if (connection->said || connection->source.fd < 0) return;
  connection->said = true;
  queue_free(&connection->in);
  if (connection->ended || connection->hung || shutdown(connection->source.fd, SHUT_WR) != 0) connection_close(connection);
}

static void discard(struct connection *connection) {
  static char nothing[CHUNK_MAX];
  ssize_t count = read(connection->source.fd, nothing, sizeof nothing);
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) connection_close(connection);
}

void connection_finish(struct connection *connection) {
  connection->closing = true;
  command_detach(connection);
  if (connection->out.length == 0) say_end(connection);
  connection_update(connection);
}

/* A frame that is only partly here keeps the connection reading; a complete one that must wait stops it. */
static bool complete_frame(const struct connection *connection, struct header *header) {
  if (connection->in.length < sizeof *header) return false;
  memcpy(header, connection->in.data + connection->in.start, sizeof *header);
  return connection->in.length >= sizeof *header + header->length;
}

static bool frame_waits(const struct connection *connection) {
  struct header header;
  return complete_frame(connection, &header) && request_blocked(connection, header.kind);
}

void connection_update(struct connection *connection) {
  if (connection->source.fd < 0) return;
  bool waits = frame_waits(connection);
  uint32_t events = 0;
  if (!connection->ended && (connection->said || (!connection->closing && !waits))) events |= EPOLLIN;
  if (connection->out.length > 0 || connection->full) events |= EPOLLOUT;
  int result = events == 0 && !connection->hung ? source_idle(&connection->source) : source_watch(&connection->source, events);
  if (result != 0) connection_close(connection);
}

static bool acceptable(const struct connection *connection, const struct header *header) {
  if (header->reserved[0] || header->reserved[1] || header->reserved[2]) return false;
  if (!connection->requested) return header->kind == REQUEST && header->length <= FRAME_MAX;
  bool steers = (header->kind >= STDIN && header->kind <= SIGNAL) || header->kind == HAND;
  return steers && header->length <= CHUNK_MAX;
}

void connection_receive(struct connection *connection) {
  struct header header;
  while (connection->source.fd >= 0 && !connection->closing && connection->in.length >= sizeof header) {
    bool complete = complete_frame(connection, &header);
    if (!acceptable(connection, &header)) {
      connection_fail(connection, "bad-request", EPROTO, "frame", "not a frame of this protocol");
      return;
    }
    if (!complete || request_blocked(connection, header.kind)) return;
    struct queue *in = &connection->in;
    const char *payload = in->data + in->start + sizeof header;
    in->start += sizeof header + header.length;
    in->length -= sizeof header + header.length;
    bool good = true;
    if (!connection->requested) {
      connection->requested = true;
      struct fields request = {payload, header.length};
      request_handle(connection, &request);
    } else {
      good = request_frame(connection, header.kind, payload, header.length);
    }
    if (!good) connection_fail(connection, "bad-request", EPROTO, "frame", "this frame has no place here");
    if (connection->source.fd >= 0 && in->length == 0) queue_free(in);
  }
}

/* How much to take at once: what the frame at hand lacks, else a little. */
static size_t wanted(const struct connection *connection) {
  struct header header;
  if (connection->in.length < sizeof header) return 4096;
  complete_frame(connection, &header);
  size_t whole = sizeof header + (header.length < FRAME_MAX ? header.length : FRAME_MAX);
  return whole > connection->in.length ? whole - connection->in.length : 4096;
}

static void receive_more(struct connection *connection) {
  static char buffer[CHUNK_MAX + 4096];
  for (int round = 0; round < 4; round++) {
    size_t most = wanted(connection);
    if (most < 4096) most = 4096;
    if (most > sizeof buffer) most = sizeof buffer;
    ssize_t count = read(connection->source.fd, buffer, most);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      connection->ended = true;
      if (count < 0 || connection->hung || connection->command == NULL) connection->hung = true;
      return;
    }
    if (!queue_append(&connection->in, buffer, (size_t)count, FRAME_MAX + sizeof buffer)) {
      connection_fail(connection, "failed", ENOMEM, "receive", "no memory");
      return;
    }
    connection_receive(connection);
    if (connection->source.fd < 0 || connection->closing) return;
    if ((size_t)count < most || frame_waits(connection)) return;
  }
}

/* After input was handled: the end of a connection, or what it waits for next. */
static void settle(struct connection *connection) {
  if (connection->source.fd < 0) return;
  if (!connection->closing && connection->ended && connection->hung && !frame_waits(connection)) connection_close(connection);
  else connection_update(connection);
}

void connection_ready(struct source *source, uint32_t events) {
  struct connection *connection = container(source, struct connection, source);
  if (connection->said) return discard(connection);
  if (events & EPOLLOUT) {
    connection->full = false;
    ssize_t left = queue_write(&connection->out, source->fd);
    if (left < 0) connection->hung = true;
    if (left == 0 && connection->closing) {
      say_end(connection);
      connection_update(connection);
      return;
    }
    if (left == 0 && connection->command != NULL) command_resume(connection->command);
  }
  if (events & (EPOLLHUP | EPOLLERR)) connection->hung = true;
  if (connection->hung) {
    queue_free(&connection->out);
    if (connection->closing) {
      connection_close(connection);
      return;
    }
    /* The client has gone, but input that it sent before still counts. */
    if (connection->command != NULL) command_resume(connection->command);
  }
  if (source->fd < 0) return;
  if (!connection->closing && !connection->ended && !frame_waits(connection)) receive_more(connection);
  settle(connection);
}

void connection_resume(struct connection *connection) {
  connection_receive(connection);
  settle(connection);
}

void connection_send_framed(struct connection *connection, const void *frame, size_t length) {
  if (connection->source.fd < 0 || connection->hung) return;
  const char *at = frame;
  if (connection->out.length == 0 && !connection->corked) {
    ssize_t written = write(connection->source.fd, at, length);
    if (written < 0 && errno != EAGAIN && errno != EINTR) {
      connection->hung = true;
      return;
    }
    if (written > 0) {
      at += written;
      length -= (size_t)written;
    }
  }
  if (length == 0) return;
  if (!queue_append(&connection->out, at, length, SEND_MAX)) shutdown(connection->source.fd, SHUT_RDWR); /* a torn frame must be the last */
  if (!connection->corked) connection_update(connection);
}

void connection_uncork(struct connection *connection) {
  connection->corked = false;
  if (connection->source.fd < 0) return;
  if (connection->out.length > 0 && queue_write(&connection->out, connection->source.fd) < 0) connection->hung = true;
  if (connection->out.length == 0 && connection->closing) say_end(connection);
  connection_update(connection);
}

void connection_renew(struct connection *connection) {
  command_detach(connection);
  connection->requested = connection->foreground = connection->input = false;
  connection->gap = 0;
  if (!connection->corked) connection_update(connection);
}

void connection_send(struct connection *connection, uint8_t kind, const void *payload, size_t length) {
  char frame[sizeof(struct header) + sizeof((struct packet *)0)->data];
  struct header header = {.length = (uint32_t)length, .kind = kind};
  if (length > sizeof frame - sizeof header) return;
  memcpy(frame, &header, sizeof header);
  if (length > 0) memcpy(frame + sizeof header, payload, length);
  connection_send_framed(connection, frame, sizeof header + length);
}

void connection_fail(struct connection *connection, const char *code, int error, const char *step, const char *message) {
  struct packet packet = {0};
  packet_put(&packet, "code", "%s", code);
  packet_put(&packet, "errno", "%d", error);
  packet_put(&packet, "step", "%s", step);
  packet_put(&packet, "message", "%s", message);
  connection_send(connection, ERROR, packet.data, packet.length);
  connection_finish(connection);
}
