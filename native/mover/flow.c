/* One direction of a connection: from a socket into a pipe, and out of the pipe into another socket. The kernel moves pages and
   copies nothing. What waits in the pipe is all that this process holds. */
#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static int kept[PIPES_KEPT][2];
static size_t kept_count;

struct flow flow_of(uint64_t most) { return (struct flow){.pipe = {-1, -1}, .most = most}; }

static bool pipe_take(struct flow *flow) {
  if (flow->pipe[0] >= 0) return true;
  if (kept_count > 0) {
    kept_count--;
    flow->pipe[0] = kept[kept_count][0];
    flow->pipe[1] = kept[kept_count][1];
    return true;
  }
  if (pipe2(flow->pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
    flow->pipe[0] = flow->pipe[1] = -1;
    return false;
  }
  /* A user who has many pipes may not enlarge them: it then takes more turns. */
  fcntl(flow->pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
  return true;
}

static void pipe_close(struct flow *flow) {
  if (flow->pipe[0] < 0) return;
  close(flow->pipe[0]);
  close(flow->pipe[1]);
  flow->pipe[0] = flow->pipe[1] = -1;
}

/* Only an empty pipe goes to another connection. */
static void pipe_keep(struct flow *flow) {
  if (flow->pipe[0] < 0 || flow->in != flow->out) return;
  if (kept_count == PIPES_KEPT) return pipe_close(flow);
  kept[kept_count][0] = flow->pipe[0];
  kept[kept_count][1] = flow->pipe[1];
  kept_count++;
  flow->pipe[0] = flow->pipe[1] = -1;
}

void flow_end(struct flow *flow) {
  pipe_keep(flow);
  pipe_close(flow);
}

static bool passing(void) { return errno == EAGAIN || errno == EINTR; }

static size_t room(const struct flow *flow) {
  uint64_t held = flow->in - flow->out, left = flow->most - flow->in;
  uint64_t free_bytes = held < PIPE_BYTES ? PIPE_BYTES - held : 0;
  return (size_t)(left < free_bytes ? left : free_bytes);
}

/* A byte that is marked as urgent stops splice for good, and hides what follows it: nothing comes, or even the end, while the loop
   is told that there is something. To receive passes over that one byte, as it does for everyone who does not ask for it. The byte
   behind it is written into the pipe, which must be empty to have room for sure. */
static ssize_t pass_urgent(const struct flow *flow, int from) {
  uint8_t next;
  if (flow->in != flow->out) return errno = EAGAIN, -1;
  ssize_t count = recv(from, &next, 1, MSG_DONTWAIT);
  return count == 1 ? write(flow->pipe[1], &next, 1) : count;
}

/* One piece in and one piece out. 1: something moved, 0: nothing can be moved now, -1: broken. */
static int turn(struct flow *flow, int from, int to) {
  bool moved = false;
  size_t wanted = flow->ended ? 0 : room(flow);
  if (wanted > 0) {
    if (!pipe_take(flow)) return -1;
    ssize_t count = splice(from, NULL, flow->pipe[1], NULL, wanted, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (count < 0 && !passing()) return -1;
    if (count <= 0 && sockatmark(from) == 1) {
      count = pass_urgent(flow, from);
      if (count < 0 && !passing()) return -1;
    }
    if (count == 0) flow->ended = true;
    if (count > 0) {
      flow->in += (uint64_t)count;
      moved = true;
    }
  }
  if (flow->in == flow->out) return moved;
  ssize_t count = splice(flow->pipe[0], NULL, to, NULL, (size_t)(flow->in - flow->out), SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (count < 0 && !passing()) return -1;
  if (count > 0) {
    flow->out += (uint64_t)count;
    moved = true;
  }
  return moved;
}

bool flow_move(struct flow *flow, int from, int to) {
  int moved = 1;
  for (int round = 0; moved > 0 && round < ROUNDS_MAX; round++) moved = turn(flow, from, to);
  pipe_keep(flow);
  if (moved < 0) return false;
  if (flow->ended && flow->in == flow->out && !flow->shut) {
    flow->shut = true;
    shutdown(to, SHUT_WR);
  }
  return true;
}

/* While something is held, only its receiver is waited for: a full pipe and a sender with more would keep the loop awake. */
bool flow_wants_input(const struct flow *flow) { return !flow->ended && flow->in == flow->out && flow->in < flow->most; }

bool flow_wants_output(const struct flow *flow) { return flow->in != flow->out; }
