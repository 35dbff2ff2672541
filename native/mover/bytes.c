/* A few bytes that wait: the head of a message, and what came with it. */
#include "parts.h"

#include <stdlib.h>
#include <string.h>

bool bytes_add(struct bytes *bytes, const uint8_t *data, size_t length) {
  if (length > bytes->room - bytes->length) {
    uint8_t *larger = realloc(bytes->data, bytes->length + length);
    if (larger == NULL) return false;
    bytes->data = larger;
    bytes->room = bytes->length + length;
  }
  if (length > 0) memcpy(bytes->data + bytes->length, data, length);
  bytes->length += length;
  return true;
}

void bytes_drop(struct bytes *bytes, size_t length) {
  bytes->length -= length;
  if (bytes->length > 0) memmove(bytes->data, bytes->data + length, bytes->length);
}

void bytes_free(struct bytes *bytes) {
  free(bytes->data);
  *bytes = (struct bytes){0};
}
