/* Requests of the host channel, and how they are answered. */
#ifndef ANSWER_H
#define ANSWER_H

#include "frames.h"

/* What a request is answered with: the fields of a reply, or an error. */
struct answer {
  struct output fields;
  bool failed;
  const char *code;
  int error;
  const char *step;
  char message[512];
};

void refuse(struct answer *answer, const char *code, int error, const char *step, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void refuse_errno(struct answer *answer, const char *step, const char *subject); /* from errno */
/* The value of a field that must be there and not empty; otherwise NULL, and the answer is a refusal. */
const char *required(const struct fields *request, const char *key, struct answer *answer);
/* A list must leave room in its frame; false when it is full. */
bool put_row(struct output *output, const char *key, const char *value, size_t most_bytes);

typedef void (*handler)(const struct fields *request, struct answer *answer);

#endif
