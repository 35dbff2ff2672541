/* What `viv` starts: it sends hot command lines to the server, which carries them out, and gives all others to Node. */
#ifndef FRONT_H
#define FRONT_H

#include "../shared/frames.h"

#include <sys/un.h>

/* The words of the command line, and who gets them if this program does not know what to do. */
struct line {
  char **words;      /* NULL at the end */
  char **node_words; /* the same behind Node and its script */
};

/* Gives the command line to Node, with all that this process has. */
void give_to_node(const struct line *line) __attribute__((noreturn));

/* Where the server's socket and the approver's token are, by the rules of src/base/config/paths.ts. */
struct places {
  struct sockaddr_un socket;
  char approver[4096];
};
bool find_places(struct places *places); /* false: Node has to find them */

/* The request: words, folder, environment and terminal of the caller. False: it can't be carried. */
bool compose_request(struct output *request, const struct line *line, const struct places *places);
bool is_utf8(const char *text);

/* A connection to a Unix socket; -1 if there is none. */
int connect_to(const char *path);
/* Whether the server at the other end speaks with fronts. It has carried nothing out yet. */
bool hand_over(int server, const struct output *request);

/* The command line at work in the server: its output, its input and its end. Returns the exit code; -1: Node has to run it. */
int converse(int server, struct line *line);

/* What the server does with the frames that come from it; split from reading, so that it can be fuzzed. */
struct session {
  int server;
  char *lost[3]; /* what is said on each stream if the server goes away, and the exit code then */
  int lost_code;
  char **again; /* instead: the words that Node runs then; NULL at the end, and where there are none */
  int exit_code; /* -1 until the end */
  bool accepted;
  bool for_node; /* the server does not take this command line */
  struct part {
    uint8_t kind; /* of output that has not come whole yet */
    uint32_t left;
  } part;
  struct reader {
    int fd; /* -1: output comes from the server */
    struct part part;
    bool accepted, whole; /* process 1 gives it; has given all */
  } reader;
};
/* Takes what it can of some bytes and says how many; SIZE_MAX: they break the protocol. */
size_t take_frames(struct session *session, const char *data, size_t length);
void session_free(struct session *session);

/* What the two streams of frames have in common, and in what they differ. */
struct stream {
  bool (*is_accepted)(const struct session *session); /* output may come */
  bool (*is_over)(const struct session *session);
  bool (*take)(struct session *session, uint8_t kind, const char *payload, size_t length); /* a whole frame that is no output; false: it is wrong */
  size_t longest;                                                                          /* of such a frame */
};
size_t take_stream(struct session *session, struct part *part, const struct stream *stream, const char *data, size_t length);

/* Output that process 1 of the sandbox gives without the server in between: take_output() is what it does with bytes from there. */
size_t take_output(struct session *session, const char *data, size_t length); /* SIZE_MAX: they break the protocol */
void read_output(struct session *session);                              /* what is there now, or waits for it */

/* Acts of a session. */
void show(struct session *session, uint8_t kind, const char *data, size_t length);
void set_raw(bool on);
void set_signals(struct session *session, bool on);
void set_input(struct session *session, bool on);
void begin_output(struct session *session, const char *socket, const char *exec, const char *token);
void more_input(size_t bytes);
void end_input_thread(void);
int send_to_server(int server, uint8_t kind, const void *payload, size_t length); /* from any thread */
void put_terminal_size(struct output *output, const char *rows, const char *cols, int fd);

#endif
