/* Frames from process 1 of a sandbox. */
#include "front.h"

#include <string.h>

#define NONE 0

/* Output is shown as it comes; nothing else has anything to say here but that it begins and that it ends. */
size_t take_output(struct session *session, char *data, size_t length) {
  struct reader *reader = &session->reader;
  size_t at = 0;
  while (!reader->whole) {
    if (reader->kind != NONE) {
      size_t part = length - at < reader->left ? length - at : reader->left;
      if (part > 0) show(session, reader->kind, data + at, part);
      at += part;
      reader->left -= (uint32_t)part;
      if (reader->left > 0) break;
      reader->kind = NONE;
      continue;
    }
    struct header header;
    if (length - at < sizeof header) break;
    memcpy(&header, data + at, sizeof header);
    if (header.reserved[0] || header.reserved[1] || header.reserved[2] || header.length > FRAME_MAX) return SIZE_MAX;
    bool is_output = header.kind == STDOUT || header.kind == STDERR;
    if (is_output != reader->accepted && header.kind != END) return SIZE_MAX;
    at += sizeof header;
    if (is_output) {
      reader->kind = header.kind;
      reader->left = header.length;
    } else if (header.kind == END) {
      if (!reader->accepted || header.length != 0) return SIZE_MAX;
      reader->whole = true;
    } else {
      static const char accepted[] = "ok=1";
      if (header.kind != REPLY || header.length != sizeof accepted) return SIZE_MAX;
      if (length - at < sizeof accepted) return at - sizeof header;
      if (memcmp(data + at, accepted, sizeof accepted) != 0) return SIZE_MAX;
      at += sizeof accepted;
      reader->accepted = true;
    }
  }
  return at;
}
