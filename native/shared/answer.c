/* What a request of the host channel is answered with. */
#include "answer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void refuse(struct answer *answer, const char *code, int error, const char *step, const char *format, ...) {
  if (answer->failed) return; /* the first failure is the cause */
  answer->failed = true;
  answer->code = code;
  answer->error = error;
  answer->step = step;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(answer->message, sizeof answer->message, format, arguments);
  va_end(arguments);
}

void refuse_errno(struct answer *answer, const char *step, const char *subject) {
  int error = errno;
  refuse(answer, code_of_errno(error), error, step, "%s: %s", subject, strerror(error));
}

const char *required(const struct fields *request, const char *key, struct answer *answer) {
  const char *value = field(request, key);
  if (value != NULL && *value != '\0') return value;
  refuse(answer, "bad-request", EINVAL, "request", "the field %s is missing", key);
  return NULL;
}

bool put_row(struct output *output, const char *key, const char *value, size_t most_bytes) {
  if (output->length + strlen(key) + strlen(value) + 2 > most_bytes) return false;
  put(output, key, "%s", value);
  return true;
}
