/* The resident helper beside the server: one loop over the channel, the children and the watches. */
#include "host.h"
#include "../trees/trees.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHANNEL 3
#define UNSENT_MAX (4u << 20) /* above this, no request is read until the server has read */

static int loop_fd = -1;
static struct source channel;
static struct output unsent, received;
static uint32_t channel_events;

static const struct {
  const char *name;
  handler handle; /* NULL: launch, which writes its own frame */
  int how;
} operations[] = {
    {"launch", NULL, FORKED},
    {"launch.disk", launch_disk, INLINE},
    {"adopt", process_adopt, INLINE},
    {"kill", process_kill, INLINE},
    {"cpus", change_cpus, FORKED},
    {"btrfs.create", btrfs_create, INLINE},
    {"btrfs.snapshot", btrfs_snapshot, THREADED},
    {"btrfs.readonly", btrfs_readonly, INLINE},
    {"btrfs.identity", btrfs_identity, INLINE},
    {"btrfs.delete", btrfs_delete, FORKED},
    {"btrfs.sync", btrfs_sync, FORKED},
    {"btrfs.freespace", btrfs_freespace, INLINE},
    {"btrfs.quota", btrfs_quota, FORKED},
    {"btrfs.qgroup", btrfs_qgroup, INLINE},
    {"btrfs.usage", btrfs_usage, INLINE},
    {"sync", sync_request, FORKED | DIES_WITH_HOST},
    {"compare", compare_request, FORKED | DIES_WITH_HOST},
    {"measure", tree_measure, FORKED | DIES_WITH_HOST},
    {"diff", diff_request, FORKED | DIES_WITH_HOST},
    {"apply.stage", apply_stage, FORKED | DIES_WITH_HOST},
    {"apply.carry", apply_carry, FORKED | DIES_WITH_HOST},
    {"apply.verify", apply_verify, FORKED | DIES_WITH_HOST},
    {"apply.back", apply_back, FORKED | DIES_WITH_HOST},
    {"apply.clean", apply_clean, FORKED | DIES_WITH_HOST},
    {"extract", extract_request, FORKED | DIES_WITH_HOST},
    {"run", run_request, FORKED | DIES_WITH_HOST},
    {"watch", watch_request, INLINE},
    {"drain", drain_request, INLINE},
    {"unwatch", unwatch_request, INLINE},
    {"machine.watch", machine_watch, INLINE},
    {"machine.changed", machine_changed, INLINE},
    {"mask", mask_request, FORKED},
    {"remove", tree_remove, FORKED},
};

int loop_add(struct source *source, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = source};
  return epoll_ctl(loop_fd, EPOLL_CTL_ADD, source->fd, &event);
}

void loop_change(struct source *source, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = source};
  epoll_ctl(loop_fd, EPOLL_CTL_MOD, source->fd, &event);
}

void loop_leave(struct source *source) { epoll_ctl(loop_fd, EPOLL_CTL_DEL, source->fd, NULL); }

void loop_remove(struct source *source) {
  if (source->fd < 0) return;
  loop_leave(source);
  close(source->fd);
  source->fd = -1;
}

static void channel_want(void) {
  uint32_t events = (unsent.length < UNSENT_MAX ? EPOLLIN : 0u) | (unsent.length > 0 ? EPOLLOUT : 0u);
  if (events == channel_events) return;
  loop_change(&channel, events);
  channel_events = events;
}

static void channel_flush(void) {
  size_t sent = 0;
  while (sent < unsent.length) {
    ssize_t count = write(CHANNEL, unsent.data + sent, unsent.length - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) exit(0); /* the server is gone; sandboxes go on */
    sent += (size_t)count;
  }
  if (sent > 0) memmove(unsent.data, unsent.data + sent, unsent.length - sent);
  unsent.length -= sent;
  channel_want();
}

void channel_frame(uint8_t kind, const void *payload, size_t length) {
  struct header header = {.length = (uint32_t)length, .kind = kind};
  put_bytes(&unsent, &header, sizeof header);
  if (length > 0) put_bytes(&unsent, payload, length);
  channel_flush();
}

void channel_event(struct output *event) {
  channel_frame(EVENT, event->data, event->length);
  output_free(event);
}

void channel_reply(const char *id, struct answer *answer) {
  struct output output = {0};
  put(&output, "id", "%s", id);
  if (answer->failed) {
    put(&output, "code", "%s", answer->code);
    put(&output, "errno", "%d", answer->error);
    put(&output, "step", "%s", answer->step);
    put(&output, "message", "%s", answer->message);
  } else {
    put(&output, "ok", "1");
    if (answer->fields.length > 0) put_bytes(&output, answer->fields.data, answer->fields.length);
  }
  channel_frame(answer->failed ? ERROR : REPLY, output.data, output.length);
  output_free(&output);
  output_free(&answer->fields);
}

static void carry_out(const struct fields *request) {
  struct answer answer = {0};
  const char *id = field(request, "id");
  const char *name = required(request, "op", &answer);
  for (size_t index = 0; name != NULL && index < sizeof operations / sizeof *operations; index++) {
    if (strcmp(operations[index].name, name) != 0) continue;
    if (operations[index].how == THREADED) thread_start(request, id, operations[index].handle);
    else if (operations[index].how != INLINE) job_start(request, id, operations[index].handle, operations[index].how);
    else {
      operations[index].handle(request, &answer);
      channel_reply(id, &answer);
    }
    return;
  }
  refuse(&answer, "unsupported", ENOSYS, "request", "no operation is called %s", name);
  channel_reply(id, &answer);
}

/* Takes one whole frame off the front of what was received; false when there is none. */
static bool take_request(size_t *at) {
  struct header header;
  if (received.length - *at < sizeof header) return false;
  memcpy(&header, received.data + *at, sizeof header);
  bool reserved = header.reserved[0] || header.reserved[1] || header.reserved[2];
  if (header.length > FRAME_MAX || header.kind != REQUEST || reserved) exit(1);
  if (received.length - *at - sizeof header < header.length) return false;
  struct fields request = {.data = received.data + *at + sizeof header, .length = header.length};
  if (!fields_valid(&request) || field(&request, "id") == NULL || strlen(field(&request, "id")) > 20) exit(1);
  carry_out(&request);
  *at += sizeof header + header.length;
  return true;
}

static void channel_ready(struct source *source, uint32_t events) {
  (void)source;
  if (events & EPOLLOUT) channel_flush();
  if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
  char chunk[CHUNK_MAX];
  ssize_t count = read(CHANNEL, chunk, sizeof chunk);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) exit(0);
  put_bytes(&received, chunk, (size_t)count);
  size_t at = 0;
  while (take_request(&at)) continue;
  memmove(received.data, received.data + at, received.length - at);
  received.length -= at;
}

static void signal_ready(struct source *source, uint32_t events) {
  (void)events;
  struct signalfd_siginfo ignored[16];
  while (read(source->fd, ignored, sizeof ignored) > 0) continue;
  jobs_reap();
}

static int prepare(struct source *signals) {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, NULL);
  signal(SIGPIPE, SIG_IGN);
  umask(0022);
  /* Process 1 of a sandbox comes to us when its launcher ends: so its exact wait status is known. */
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  protect_from_oom();
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max < 65536 ? files.rlim_max : 65536;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  loop_fd = epoll_create1(EPOLL_CLOEXEC);
  *signals = (struct source){.fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK), .ready = signal_ready};
  channel = (struct source){.fd = CHANNEL, .ready = channel_ready};
  channel_events = EPOLLIN;
  int flags = fcntl(CHANNEL, F_GETFL);
  if (loop_fd < 0 || signals->fd < 0 || flags < 0) return -1;
  if (fcntl(CHANNEL, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(CHANNEL, F_SETFD, FD_CLOEXEC) != 0) return -1;
  return loop_add(&channel, EPOLLIN) == 0 && loop_add(signals, EPOLLIN) == 0 ? 0 : -1;
}

int host_main(void) {
  struct source signals;
  if (prepare(&signals) != 0) {
    fprintf(stderr, "cell: no channel on descriptor 3: %s\n", strerror(errno));
    return 1;
  }
  for (;;) {
    struct epoll_event event; /* one at a time: a handler may free what a later event points to */
    int count = epoll_wait(loop_fd, &event, 1, -1);
    if (count < 0 && errno != EINTR) return 1;
    if (count < 1) continue;
    struct source *source = event.data.ptr;
    source->ready(source, event.events);
  }
}
