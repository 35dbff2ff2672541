/* A stream of frames, from the server or from process 1: output is shown as it comes, all else is taken when it has come whole. */
#include "front.h"

#include <string.h>

/* False: more of it is to come. */
static bool show_part(struct session *session, struct part *part, const char *data, size_t length, size_t *at) {
  size_t now = length - *at < part->left ? length - *at : part->left;
  if (now > 0) show(session, part->kind, data + *at, now);
  *at += now;
  part->left -= (uint32_t)now;
  return part->left == 0;
}

size_t take_stream(struct session *session, struct part *part, const struct stream *stream, const char *data, size_t length) {
  size_t at = 0;
  while (!stream->is_over(session)) {
    struct header header;
    if (!show_part(session, part, data, length, &at) || length - at < sizeof header) break;
    memcpy(&header, data + at, sizeof header);
    if (header.reserved[0] || header.reserved[1] || header.reserved[2] || header.length > FRAME_MAX) return SIZE_MAX;
    size_t there = length - at - sizeof header;
    if (header.kind == STDOUT || header.kind == STDERR) {
      if (!stream->is_accepted(session)) return SIZE_MAX;
      *part = (struct part){.kind = header.kind, .left = header.length};
      at += sizeof header;
      continue;
    }
    if (header.length > stream->longest) return SIZE_MAX;
    if (there < header.length) break;
    if (!stream->take(session, header.kind, data + at + sizeof header, header.length)) return SIZE_MAX;
    at += sizeof header + header.length;
  }
  return at;
}
