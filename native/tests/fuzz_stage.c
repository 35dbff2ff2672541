/* Compares the log of a command, staged or not, with what was printed: every byte at its place, and the newest always there. Linked with
   init/commands/stage.c, init/commands/log.c and shared/frames.c alone, on a clock of its own. fuzz_stage <seconds> <seed> <folder> */
#include "../init/commands/commands.h"
#include "invent.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static int64_t clock_ms = 1;
static size_t staged_runs, lost_runs;

int64_t now_ms(void) { return clock_ms; }

void packet_put(struct packet *packet, const char *key, const char *format, ...) {
  va_list arguments;
  packet->length += (size_t)sprintf(packet->data + packet->length, "%s=", key);
  va_start(arguments, format);
  packet->length += (size_t)vsprintf(packet->data + packet->length, format, arguments) + 1;
  va_end(arguments);
}

static char byte_at(uint64_t place) { return (char)((place * 2654435761u) >> 13); }

static void print(struct log *log, uint64_t place, size_t length) {
  static char plain[sizeof(struct header) + HANDED_READ_MAX];
  char *room = log_room(log), *frame = room != NULL ? room : plain;
  struct header header = {.length = (uint32_t)length, .kind = place % 3 == 0 ? STDERR : STDOUT};
  /* A read may write all of the room before it says how much there was. */
  if (room != NULL) memset(room, 'x', sizeof plain);
  memcpy(frame, &header, sizeof header);
  for (size_t at = 0; at < length; at++) frame[sizeof header + at] = byte_at(place + at);
  if (room != NULL) log_staged(log, length);
  else log_append(log, header.kind, frame + sizeof header, length);
}

static char *load(int folder, const char *name, size_t *size) {
  static char data[8u << 20];
  int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  ssize_t count = read(fd, data, sizeof data);
  close(fd);
  if (count < 0 || (size_t)count == sizeof data) abort();
  *size = (size_t)count;
  return data;
}

/* The place behind the last byte that the file tells of; `place` where there is no file. */
static uint64_t check_file(int folder, const char *name, uint64_t place, bool ends) {
  size_t size = 0, at = 0;
  bool ended = false;
  char *data = load(folder, name, &size);
  if (data == NULL) return place;
  for (struct header header; at < size; at += sizeof header + header.length) {
    if (size - at < sizeof header) abort();
    memcpy(&header, data + at, sizeof header);
    if (size - at - sizeof header < header.length) abort();
    struct fields fields = {.data = data + at + sizeof header, .length = header.length};
    int64_t number = 0;
    if (header.kind == REPLY) {
      if (at != 0 || !field_number(&fields, "offset", &number)) abort();
      if (place != 0 && (uint64_t)number != place) abort(); /* nothing lies between the two files */
      place = (uint64_t)number;
    } else if (header.kind == GAP) {
      if (!field_number(&fields, "bytes", &number)) abort();
      place += (uint64_t)number;
    } else if (header.kind == EXIT) {
      ended = true;
    } else {
      for (size_t index = 0; index < header.length; index++)
        if (fields.data[index] != byte_at(place + index)) abort();
      place += header.length;
    }
  }
  if (ends && !ended) abort();
  return place;
}

static void run(int folder) {
  struct log log;
  uint64_t bytes = STAGED_LOG_SMALLEST - 4096 + below(3u << 20), printed = 0, lost = 0;
  if (log_open(&log, folder, "a", bytes, once_in(2)) != 0) abort();
  size_t largest = once_in(2) ? HANDED_READ_MAX : 3000, frames = 1 + below(once_in(8) ? 200 : 20);
  for (; frames > 0; frames--) {
    if (once_in(4)) log_stage(&log);
    size_t length = 1 + below(once_in(4) ? HANDED_READ_MAX : largest);
    staged_runs += log.staged;
    if (once_in(16)) log_room(&log); /* a read that found nothing */
    print(&log, printed, length);
    printed += length;
    if (once_in(16)) clock_ms += STAGED_MS;
    int64_t due = log_timers(&log, clock_ms);
    if (due != 0 && (!log.staged || due <= clock_ms)) abort();
    if (once_in(16)) log_unstage(&log);
  }
  log_unstage(&log);
  lost = log_dropped(&log);
  lost_runs += lost > 0;
  log_exit(&log, "code=0", 7);
  uint64_t older = check_file(folder, "a.log.1", 0, false);
  if (check_file(folder, "a.log", older, true) != printed) abort();
  log_close(&log);
  unlinkat(folder, "a.log", 0);
  unlinkat(folder, "a.log.1", 0);
}

int main(int argc, char **argv) {
  time_t end = fuzz_begin(argc, argv);
  int folder = argc < 4 ? -1 : open(argv[3], O_PATH | O_DIRECTORY | O_CLOEXEC);
  size_t runs = 0;
  if (folder < 0) return 2;
  for (; time(NULL) < end; runs++) run(folder);
  printf("runs=%zu acts=%zu lost=%zu\n", runs, staged_runs, lost_runs);
  return 0;
}
