/* Bytes from one file to another, by the kernel where it can. */
#include "carry.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

#define STEP_BYTES (256u << 20)
#define BUFFER_BYTES (1u << 20)

static bool copy(int from, int to, int64_t left) {
  char *data = malloc(BUFFER_BYTES);
  if (data == NULL) return false;
  while (left > 0) {
    ssize_t count = read(from, data, left < (int64_t)BUFFER_BYTES ? (size_t)left : BUFFER_BYTES);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 || (count > 0 && write_all(to, data, (size_t)count) != 0)) break;
    if (count == 0) left = 0;
    left -= count;
  }
  free(data);
  return left <= 0;
}

/* What can't be done by the kernel is known at the first step: then nothing has been moved by it. */
bool move_bytes(int from, int to, int64_t most) {
  int64_t left = most;
  bool shares = true;
  while (left > 0) {
    size_t step = left < (int64_t)STEP_BYTES ? (size_t)left : STEP_BYTES;
    ssize_t count = shares ? copy_file_range(from, NULL, to, NULL, step, 0) : sendfile(to, from, NULL, step);
    if (count > 0) left -= count;
    else if (count == 0) return true;
    else if (errno == EINTR) continue;
    else if (errno == EIO || errno == ENOSPC || errno == EDQUOT || errno == EFBIG) return false;
    else if (shares) shares = false;
    else return copy(from, to, left);
  }
  return true;
}
