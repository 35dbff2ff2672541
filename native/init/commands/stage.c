/* The log of a command whose output comes faster than it is worth writing: of a gibibyte in a second, a bounded log keeps
   mebibytes. The newest output waits in memory for a moment, and what falls out of the bound meanwhile is never written. One
   log of a sandbox at most has this memory, since no limit of the sandbox counts it; the others are written at once. */
#include "commands.h"

#include <string.h>
#include <sys/mman.h>

#define FRAME_ROOM (sizeof(struct header) + HANDED_READ_MAX)
#define STAGE_MAX (8u << 20)
#define BESIDE_FRAMES 4096 /* what else a file of the log holds */

/* Whole frames, the oldest at `tail`. Where they go round the end, the last one before it ends at `end`. */
static struct {
  struct log *owner;
  char *data;
  size_t size, head, tail, end;
  bool wrapped;
  uint64_t lost; /* bytes of output that made room since the last time all was written */
  int64_t due;
} stage;

void log_stage(struct log *log) {
  size_t size = log->half < STAGE_MAX ? (size_t)log->half : STAGE_MAX;
  if (stage.owner != NULL || !log->wanted || 2 * log->half < STAGED_LOG_SMALLEST) return;
  char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return;
  memset(&stage, 0, sizeof stage);
  stage.owner = log;
  stage.data = data;
  stage.size = size - BESIDE_FRAMES;
  log->staged = true;
}

static size_t frame_at(size_t at, struct header *header) {
  memcpy(header, stage.data + at, sizeof *header);
  return sizeof *header + header->length;
}

static void step(void) {
  struct header header;
  stage.tail += frame_at(stage.tail, &header);
  if (!stage.wrapped || stage.tail != stage.end) return;
  stage.tail = 0;
  stage.wrapped = false;
}

static bool is_empty(void) { return !stage.wrapped && stage.tail == stage.head; }

static void make_room(void) {
  if (is_empty()) stage.head = stage.tail = 0;
  while ((stage.wrapped ? stage.tail : stage.size) - stage.head < FRAME_ROOM) {
    if (!stage.wrapped) {
      stage.end = stage.head;
      stage.head = 0;
      stage.wrapped = true;
      continue;
    }
    struct header oldest;
    frame_at(stage.tail, &oldest);
    stage.lost += oldest.length;
    step();
  }
}

char *log_room(struct log *log) {
  if (!log->staged) return NULL;
  make_room();
  return stage.data + stage.head;
}

void log_staged(struct log *log, size_t length) {
  (void)log;
  stage.head += sizeof(struct header) + length;
  if (stage.due == 0) stage.due = now_ms() + STAGED_MS;
}

static void write_all_frames(struct log *log) {
  uint64_t lost = stage.lost;
  stage.due = 0;
  stage.lost = 0;
  if (is_empty()) return;
  log->staged = false;
  if (lost > 0) log_restart(log, lost);
  while (!is_empty()) {
    struct header header;
    frame_at(stage.tail, &header);
    log_append(log, header.kind, stage.data + stage.tail + sizeof header, header.length);
    step();
  }
  /* Nothing lies between what is kept and the newest output. */
  if (lost > 0) log_forget_older(log);
  stage.head = stage.tail = 0;
  log->staged = true;
}

int64_t log_timers(struct log *log, int64_t now) {
  if (!log->staged || stage.due == 0) return 0;
  if (now >= stage.due) write_all_frames(log);
  return stage.due;
}

void log_unstage(struct log *log) {
  if (!log->staged) return;
  write_all_frames(log);
  log->staged = false;
  munmap(stage.data, stage.size + BESIDE_FRAMES);
  memset(&stage, 0, sizeof stage);
}
