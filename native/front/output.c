/* Frames from process 1 of a sandbox: that it gives the output, the output, the end. */
#include "front.h"

#include <string.h>

static const char accepted[] = "ok=1";

static bool is_accepted(const struct session *session) { return session->reader.accepted; }
static bool is_whole(const struct session *session) { return session->reader.whole; }

static bool take(struct session *session, uint8_t kind, const char *payload, size_t length) {
  struct reader *reader = &session->reader;
  if (!reader->accepted) return reader->accepted = kind == REPLY && length == sizeof accepted && memcmp(payload, accepted, length) == 0;
  return reader->whole = kind == END && length == 0;
}

size_t take_output(struct session *session, const char *data, size_t length) {
  static const struct stream stream = {.is_accepted = is_accepted, .is_over = is_whole, .take = take, .longest = sizeof accepted};
  return take_stream(session, &session->reader.part, &stream, data, length);
}
