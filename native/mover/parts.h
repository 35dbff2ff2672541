/* The mover: what its parts share, and its bounds. One loop, nothing that blocks. */
#ifndef MOVER_PARTS_H
#define MOVER_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Every bound of the mover stands here. */
#define CONNECTIONS_MAX 16384            /* of all sandboxes */
#define DOOR_CONNECTIONS_MAX 256         /* of one sandbox; the server turns away earlier, and says why */
#define DOORS_MAX 8192
#define MESSAGES_WAITING_MAX 256         /* for the server, before no further connection is taken */
#define LINE_MAX_BYTES (128u << 10)      /* of the server's channel: the head of an answer, in hexadecimal digits */
#define PREFACE_MAX 300                  /* what process 1 says of a connection */
#define PROXIED 1                        /* a preface of this byte: the program knows the proxy */
#define DESCRIPTORS_WAITING_MAX 64       /* received, and their line is not whole yet */
#define PIPE_BYTES (1u << 20)            /* moved at once in one direction */
#define PIPES_KEPT 16                    /* empty pipes that wait for their next use */
#define ROUNDS_MAX 4                     /* of moving, before the next connection has its turn */
#define SILENT_MS 1000                   /* how long is waited for the descriptor that process 1 sends */
#define REQUEST_MAX (2u << 10)           /* of a request that the server is shown; larger ones it reads itself */
#define REQUEST_MS 250                   /* how long is waited for the first request, before the server waits for it */
#define ANSWER_MAX (32u << 10)           /* of the head of an answer */
#define SAID_MAX (48u << 10)             /* of what a program says first in a tunnel; the server has enough earlier */
#define PARTING_MS 5000                  /* how long a program has to hang up, once its last answer is whole */
#define TICK_MS 250

#define container(pointer, type, member) ((type *)(void *)((char *)(pointer) - offsetof(type, member)))

/* A descriptor in the loop. `ready` may free the object that holds it. */
struct source {
  int fd;
  bool added;
  uint32_t events;
  void (*ready)(struct source *source, uint32_t events);
};

/* A few bytes that wait. */
struct bytes {
  uint8_t *data;
  size_t length, room;
};

/* mover.c */
int64_t monotonic_ms(void);
int mover_watch(struct source *source, uint32_t events); /* 0 keeps it out of the loop */
void mover_close(struct source *source);

/* channel.c: lines of the server, as child_process writes them with its `json` serialization */
void channel_open(int fd);
bool channel_crowded(void);
void channel_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void channel_show(const char *text, const uint8_t *data, size_t length); /* the text with these bytes in hexadecimal digits */
bool channel_give(int fd, const char *text);        /* the text with a copy of the descriptor; false: there is no room for one */
void channel_take(const char *data, size_t length); /* bytes that were received */
void channel_take_descriptor(int fd);               /* that came with the next bytes */

/* request.c: one message of the server; takes the descriptor, -1 if there is none */
void server_request(const char *text, int fd);

/* doors.c: the sockets at which process 1 of each sandbox hands over connections */
void door_open(uint32_t id, const char *path);
void door_shut(uint32_t id);
struct door;
uint32_t door_number(const struct door *door);
void door_left(struct door *door);   /* one of its connections has ended */
void doors_resume(void);             /* the server has read, or a connection has ended */
size_t arrivals_timed(void);
void arrivals_tick(int64_t now);

/* connections.c: connections from inside, and what is moved for them */
struct connection;
struct connection *connection_add(int fd, struct door *door); /* NULL: no room. Takes the descriptor in both cases */
void connection_give(struct connection *connection, const uint8_t *preface, size_t length); /* to the server, which speaks with it from now on */
void connection_hold(uint64_t number, int fd);    /* one that the server has made; its id is told */
void connection_join(uint64_t id, int outside, int64_t idle_ms);
void connection_body(uint64_t id, int outside, uint64_t count, int64_t idle_ms);
void connection_cut(uint64_t id);
void connection_drop(uint64_t id);
size_t connections_timed(void);             /* those that a tick looks at */
void connections_tick(int64_t now);

/* exchange.c: plain requests, one after the other, that the server decides on and does not carry */
struct exchange_request {
  const char *address;
  uint16_t port;
  int64_t within_ms, idle_ms;
  bool tunnels;        /* no request is sent: the program is told `data`, and may speak */
  const uint8_t *data; /* as it goes out */
  size_t length;
  int64_t keep_ms;     /* as of a reply; for a tunnel, how long the program may be silent */
  const uint8_t *tail; /* last headers of a simple answer; without them, every answer is shown */
  size_t tail_length;
};
struct exchange_reply {
  int64_t keep_ms;
  uint64_t count;      /* bytes of the body; UINT64_MAX: until the end */
  const uint8_t *data; /* its head, as the program gets it */
  size_t length;
};
void exchange_offer(struct connection *connection); /* what the program says first decides who reads it */
void exchange_fetch(uint64_t id, const struct exchange_request *request);
void exchange_go(uint64_t id);
void exchange_more(uint64_t id);
void exchange_reply(uint64_t id, const struct exchange_reply *reply);
void exchange_give(uint64_t id);
void tunnel_carry(uint64_t id);

/* answer.c: whether a head is simple; `made` is then as the program gets it, with `tail` at its end, and `count` the bytes of its body */
bool answer_made(const uint8_t *head, size_t length, const struct bytes *tail, struct bytes *made, uint64_t *count);

/* bytes.c */
bool bytes_add(struct bytes *bytes, const uint8_t *data, size_t length);
void bytes_drop(struct bytes *bytes, size_t length); /* from their beginning */
void bytes_free(struct bytes *bytes);

/* flow.c: one direction */
struct flow {
  int pipe[2];          /* -1 while nothing is on the way */
  uint64_t in, out;     /* bytes read, bytes written */
  uint64_t most;        /* bytes to read; UINT64_MAX: until the end */
  bool ended, shut;     /* the reading side sends no more; the other has been told so */
};
struct flow flow_of(uint64_t most);
bool flow_move(struct flow *flow, int from, int to); /* false: broken */
bool flow_wants_input(const struct flow *flow);
bool flow_wants_output(const struct flow *flow);
void flow_end(struct flow *flow);

#endif
