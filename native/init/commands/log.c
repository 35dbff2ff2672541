/* The bounded log of a command: a recording of frames in two files, the newest output always there. */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* A frame is written whole or not at all, so a full disk never tears the recording. */
static bool append(struct log *log, uint8_t kind, const char *data, size_t length) {
  struct header header = {.length = (uint32_t)length, .kind = kind};
  struct iovec parts[2] = {{&header, sizeof header}, {(void *)data, length}};
  ssize_t written = writev(log->fd, parts, 2);
  if (written == (ssize_t)(sizeof header + length)) {
    log->size += (uint64_t)written;
    return true;
  }
  if (written > 0 && ftruncate(log->fd, (off_t)log->size) != 0) {
    close(log->fd); /* torn: nothing may follow in this file */
    log->fd = -1;
  }
  return false;
}

#define SPARE "spare"
#define FRESH (O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW)

/* Finding room for a new file can take a file system a millisecond; giving one a name takes it no time. */
void log_prepare(int folder) {
  int fd = folder < 0 ? -1 : openat(folder, SPARE, O_CREAT | O_EXCL | FRESH, 0600);
  if (fd >= 0) close(fd);
}

static int fresh_file(const struct log *log) {
  if (syscall(SYS_renameat2, log->folder, SPARE, log->folder, log->name, RENAME_NOREPLACE) == 0) return openat(log->folder, log->name, FRESH);
  return openat(log->folder, log->name, O_CREAT | O_EXCL | FRESH, 0600);
}

static int begin_file(struct log *log) {
  log->size = 0;
  log->current = 0;
  log->fd = fresh_file(log);
  if (log->fd < 0) return -1;
  struct packet packet = {0};
  packet_put(&packet, "offset", "%llu", (unsigned long long)log->total);
  packet_put(&packet, "dropped", "%llu", (unsigned long long)log_dropped(log));
  if (append(log, REPLY, packet.data, packet.length)) {
    /* A file that begins after the end of the command repeats how it ended, or rotation would lose it. */
    if (log->exit_length == 0 || append(log, EXIT, log->exit, log->exit_length)) return 0;
  }
  if (log->fd >= 0) close(log->fd);
  log->fd = -1;
  unlinkat(log->folder, log->name, 0);
  return -1;
}

static void rotate(struct log *log) {
  char older[sizeof log->name + 3];
  snprintf(older, sizeof older, "%s.1", log->name);
  if (log->fd >= 0) close(log->fd);
  log->fd = -1;
  if (log->current > 0 || log->size > 0) {
    if (renameat(log->folder, log->name, log->folder, older) == 0) log->previous = log->current;
    else unlinkat(log->folder, log->name, 0);
  }
  log->current = 0;
  log->gap = 0; /* the new file's offset tells it */
  begin_file(log);
}

void log_begin(struct log *log) {
  if (log->wanted && log->fd < 0) begin_file(log);
}

void log_forget_older(struct log *log) {
  char older[sizeof log->name + 3];
  snprintf(older, sizeof older, "%s.1", log->name);
  if (unlinkat(log->folder, older, 0) == 0) log->previous = 0;
}

void log_restart(struct log *log, uint64_t lost) {
  log->total += lost;
  rotate(log);
}

int log_open(struct log *log, int folder, const char *id, uint64_t bytes, bool begin) {
  *log = (struct log){.folder = folder, .fd = -1, .wanted = folder >= 0 && bytes > 0};
  if (!log->wanted) return 0;
  if (bytes < LOG_SMALLEST) bytes = LOG_SMALLEST;
  if (bytes > LOG_LARGEST) bytes = LOG_LARGEST;
  log->half = bytes / 2;
  snprintf(log->name, sizeof log->name, "%s.log", id);
  /* A log that cannot be written (disk full) must not keep the command from running; one that exists must. */
  if (begin && begin_file(log) != 0 && errno == EEXIST) return -1;
  return 0;
}

static void append_piece(struct log *log, uint8_t kind, const char *data, size_t length) {
  if (log->fd < 0 || log->size + sizeof(struct header) + length > log->half) rotate(log);
  if (log->fd >= 0 && log->gap > 0) {
    struct packet packet = {0};
    packet_put(&packet, "bytes", "%llu", (unsigned long long)log->gap);
    if (append(log, GAP, packet.data, packet.length)) log->gap = 0;
  }
  log->total += length;
  if (log->fd >= 0 && log->gap == 0 && append(log, kind, data, length)) log->current += length;
  else log->gap += length;
}

void log_append(struct log *log, uint8_t kind, const char *data, size_t length) {
  if (!log->wanted) return;
  size_t most = (size_t)(log->half / 2);
  while (length > 0) {
    size_t piece = length < most ? length : most;
    append_piece(log, kind, data, piece);
    data += piece;
    length -= piece;
  }
}

/* How a command ended matters more than what it printed: on a full disk the output makes room. */
void log_exit(struct log *log, const char *payload, size_t length) {
  if (!log->wanted || length > sizeof log->exit) return;
  memcpy(log->exit, payload, length);
  log->exit_length = length;
  if (log->fd >= 0 && append(log, EXIT, payload, length)) return;
  if (log->fd >= 0) close(log->fd);
  unlinkat(log->folder, log->name, 0);
  begin_file(log);
}

uint64_t log_dropped(const struct log *log) { return log->wanted ? log->total - log->current - log->previous : 0; }

void log_discard(struct log *log) {
  if (log->fd >= 0) unlinkat(log->folder, log->name, 0);
  log_close(log);
}

void log_close(struct log *log) {
  if (log->fd >= 0) close(log->fd);
  log->fd = -1;
  log->wanted = false;
}
