/* What the fuzzers share: numbers by chance, and bytes that are sound at first. */
#ifndef INVENT_H
#define INVENT_H

#include "../shared/frames.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* fuzz <seconds> [seed]: when it ends. */
static inline time_t fuzz_begin(int argc, char **argv) {
  srand(argc > 2 ? (unsigned)atoi(argv[2]) : 1);
  return time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
}

static inline size_t below(size_t most) { return (size_t)rand() % most; }
static inline bool once_in(size_t times) { return below(times) == 0; }

static inline size_t put_frame(char *at, uint8_t kind, const void *payload, size_t length) {
  struct header header = {.length = (uint32_t)length, .kind = kind};
  memcpy(at, &header, sizeof header);
  if (length > 0) memcpy(at + sizeof header, payload, length);
  return sizeof header + length;
}

static inline size_t put_word(char *at, const char *word) {
  memcpy(at, word, strlen(word) + 1);
  return strlen(word) + 1;
}

/* A few bytes are others, and sometimes the end is missing. */
static inline size_t spoil(char *data, size_t size) {
  for (size_t count = below(4); count > 0 && size > 0; count--) data[below(size)] = (char)rand();
  return size > 0 && once_in(4) ? below(size) : size;
}

/* A copy whose end is where the sanitizer looks. */
static inline char *exactly(const char *data, size_t size) {
  char *copy = malloc(size == 0 ? 1 : size);
  if (copy == NULL) abort();
  memcpy(copy, data, size);
  return copy;
}

#endif
