/* Copies single files out of a tree that a sandbox wrote into a folder of the host: regular files only, never through a link. */
#include "trees.h"
#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

/* Bytes copied, or -1. */
static int64_t copy_out(int source, const char *target, off_t most) {
  struct stat status;
  if (fstat(source, &status) != 0) return -1;
  if (!S_ISREG(status.st_mode) || status.st_size > most) {
    errno = EFBIG;
    return -1;
  }
  int fd = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return -1;
  off_t left = status.st_size;
  ssize_t sent = 1;
  while (left > 0 && (sent = sendfile(fd, source, NULL, (size_t)left)) > 0) left -= sent;
  int saved = errno;
  close(fd);
  errno = saved;
  return sent < 0 ? -1 : status.st_size - left;
}

/* root=, most= (bytes a file), total= (bytes in all: what is sparse in the tree takes real space here), file=<path below root>|<target>,
   repeated. Reply: bytes= copied, skipped=<path> for what is no file or too large. */
void extract_request(const struct fields *request, struct answer *answer) {
  const char *root = required(request, "root", answer);
  int64_t most = 0, total = INT64_MAX, bytes = 0;
  if (root == NULL) return;
  if (!field_number(request, "most", &most) || (field(request, "total") != NULL && !field_number(request, "total", &total))) {
    refuse(answer, "bad-request", EINVAL, "request", "most and total must be numbers");
    return;
  }
  int folder = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (folder < 0) {
    refuse_errno(answer, "extract", root);
    return;
  }
  for (const char *file = field(request, "file"); file != NULL && !answer->failed; file = field_next(request, "file", file)) {
    char *copy = strdup(file), *parts[2];
    if (copy == NULL || split_parts(copy, parts, 2) != 2) refuse(answer, "bad-request", EINVAL, "request", "file needs a path and a target");
    else {
      int source = open_beneath(folder, parts[0], O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      int64_t result = source < 0 ? -1 : copy_out(source, parts[1], most < total - bytes ? most : total - bytes);
      if (result >= 0) bytes += result;
      else if (errno == ENOSPC || errno == EDQUOT) refuse_errno(answer, "extract", parts[1]);
      else put_row(&answer->fields, "skipped", parts[0], FRAME_MAX / 2);
      if (source >= 0) close(source);
    }
    free(copy);
  }
  if (!answer->failed) put(&answer->fields, "bytes", "%lld", (long long)bytes);
  close(folder);
}
