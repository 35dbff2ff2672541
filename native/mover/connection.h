/* A connection, for the files that carry it. */
#ifndef MOVER_CONNECTION_H
#define MOVER_CONNECTION_H

#include "parts.h"

enum state {
  HELD,     /* the server has a copy and speaks with the program */
  JOINED,   /* both ways until both have ended */
  BODY,     /* so many bytes to the program */
  /* In the states below, the server has no copy (exchange.c). */
  SILENT,   /* the program has sent nothing yet */
  ASKED,    /* the server was shown a request, and decides */
  DIALLING, /* the address that the server named */
  DIALLED,  /* it answers, and the server has not said that the request may go */
  SENT,     /* the request went out; its answer has not begun */
  ANSWERED, /* the server was shown the head of the answer */
  REPLYING, /* the answer goes to the program */
  PARTED,   /* the last answer is whole, and the program has not hung up */
  HEARING,  /* the program may speak in its tunnel, and has said nothing */
  HEARD,    /* the server was shown what it said */
  SAYING,   /* that goes outside, before all else */
};

struct connection {
  struct source inside, outside;
  uint64_t id;
  struct door *door;      /* NULL: the server has made it */
  enum state state;
  struct flow up, down;   /* from inside to outside, and back */
  uint64_t sent, received; /* bytes that went outside and came from there, beside those of the flows */
  uint64_t told;          /* bytes that the server knows of */
  uint64_t seen;          /* bytes at the last tick */
  int64_t active_at, idle_ms;
  /* Of an exchange. */
  bool known;             /* the server knows its number */
  bool goes;              /* the request is sent once the address answers */
  bool tunnels;           /* the request is for a tunnel: what is sent is told to the program */
  bool carried;           /* whatever it says in the tunnel is moved */
  bool ended;             /* the last answer is inside, and the server was not told so */
  int64_t due;            /* when it has waited for long enough, while it is silent, dialled, parted or to be heard */
  int64_t keep_ms;        /* how long the next request, or the first word in a tunnel, is waited for; 0: there is none */
  size_t shown;           /* bytes of the request that the server has seen and that are still to be read */
  struct bytes request;   /* as it goes out, while it is dialled */
  struct bytes tail;      /* last headers of a simple answer */
  struct bytes answer;    /* what came, until its head is whole; then what goes to the program before the rest. Of a tunnel: what the program said */
  size_t head;            /* bytes of the head in `answer` */
  uint64_t written;       /* bytes of `answer` that the program got */
};

struct connection *connection_find(uint64_t id);
void connection_enter(struct connection *connection, enum state state);
void connection_rest(struct connection *connection);             /* nothing more is moved */
void connection_tell_end(const struct connection *connection, bool whole);
void connection_stop(struct connection *connection, bool whole); /* both */
void connection_reset(struct connection *connection);            /* both sides learn that it did not end well, once it is forgotten */
void connection_forget(struct connection *connection);
void connection_carry(struct connection *connection);            /* from now on both ways, until both have ended */

/* exchange.c */
void exchange_leave(struct connection *connection); /* cut, or broken */
void exchange_tick(struct connection *connection, int64_t now);
int exchange_watch(struct connection *connection, uint32_t inside, uint32_t outside); /* and a hang-up of the program */

/* tunnel.c */
void tunnel_begin(struct connection *connection); /* the address answers, and the server lets it begin */
void tunnel_await(struct connection *connection); /* what the program says next */
void tunnel_hear(struct connection *connection);  /* the program speaks, or hangs up */
void tunnel_say(struct connection *connection);   /* the host takes more of what it said */

#endif
