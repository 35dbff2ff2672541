/* A bounded queue of bytes between a fast side and a slow one. */
#include "channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool queue_append(struct queue *queue, const void *data, size_t length, size_t most) {
  if (length == 0) return true;
  if (length > most || queue->length > most - length) return false;
  if (queue->start + queue->length + length > queue->capacity) {
    if (queue->start > 0) memmove(queue->data, queue->data + queue->start, queue->length);
    queue->start = 0;
  }
  if (queue->length + length > queue->capacity) {
    size_t capacity = queue->capacity == 0 ? 1024 : queue->capacity;
    while (capacity < queue->length + length) capacity *= 2;
    char *grown = realloc(queue->data, capacity);
    if (grown == NULL) return false;
    queue->data = grown;
    queue->capacity = capacity;
  }
  memcpy(queue->data + queue->start + queue->length, data, length);
  queue->length += length;
  return true;
}

ssize_t queue_write(struct queue *queue, int fd) {
  while (queue->length > 0) {
    ssize_t written = write(fd, queue->data + queue->start, queue->length);
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return (ssize_t)queue->length;
      return -1;
    }
    queue->start += (size_t)written;
    queue->length -= (size_t)written;
  }
  queue_free(queue); /* an idle queue holds no memory */
  return 0;
}

void queue_free(struct queue *queue) {
  free(queue->data);
  *queue = (struct queue){0};
}
