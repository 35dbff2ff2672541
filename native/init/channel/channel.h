/* The sandbox channel: connections to process 1, their frames and their requests. */
#ifndef CHANNEL_H
#define CHANNEL_H

#include "../../shared/frames.h"
#include "../init.h"

/* A bounded queue of bytes. */
struct queue {
  char *data;
  size_t start, length, capacity;
};

/* Fields of a reply from process 1: fixed room, so that building one cannot fail. What does not fit is left out. */
struct packet {
  size_t length;
  char data[4096];
};

struct command;

struct connection {
  struct source source;
  struct connection *next, *previous;    /* all connections */
  struct connection *next_listener;      /* of the same command */
  struct command *command;
  struct queue in, out;
  uint64_t gap;
  bool requested;                        /* the REQUEST has been taken */
  bool foreground, input;                /* lossless; may send STDIN */
  bool ended, hung, closing;             /* peer sends no more; peer is gone; nothing more to tell it */
  bool said;                             /* closing, and the peer has been given the end */
  bool corked;                           /* what is sent waits for connection_uncork() */
  bool full;                             /* nothing waits here, but the command does until the kernel has room */
};

/* queue.c */
bool queue_append(struct queue *queue, const void *data, size_t length, size_t most);
ssize_t queue_write(struct queue *queue, int fd);         /* bytes left, or -1 when the other side is gone */
void queue_free(struct queue *queue);

/* channel.c */
void packet_put(struct packet *packet, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));
void packet_bytes(struct packet *packet, const char *data, size_t length);
struct connection *connection_open(int fd);
void connection_ready(struct source *source, uint32_t events);
void connection_receive(struct connection *connection);   /* takes the complete frames of its queue */
void connection_resume(struct connection *connection);    /* what blocked its next frame is over */
void connection_update(struct connection *connection);
void connection_send(struct connection *connection, uint8_t kind, const void *payload, size_t length);
void connection_send_framed(struct connection *connection, const void *frame, size_t length);
void connection_fail(struct connection *connection, const char *code, int error, const char *step, const char *message);
void connection_uncork(struct connection *connection);
void connection_renew(struct connection *connection);     /* the next frame is a REQUEST again */
void connection_finish(struct connection *connection);    /* tells the end when everything is sent */
void connection_close(struct connection *connection);
int connection_release(struct connection *connection, struct queue *rest); /* gives up the descriptor; -1 unless all is sent */
size_t connection_count(void);

/* request.c: validates, then has the other parts act */
void request_handle(struct connection *connection, const struct fields *request);
bool request_frame(struct connection *connection, uint8_t kind, const char *payload, size_t length);
bool request_blocked(const struct connection *connection, uint8_t kind);

#endif
