/* Copies single files out of a tree that a sandbox wrote into a folder of the host: regular files only, never through a link. */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

static int copy_out(int source, const char *target, off_t most) {
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
  return sent < 0 ? -1 : 0;
}

/* root=, most= (bytes a file), file=<path below root>|<target>, repeated. Reply: skipped=<path> for what is no file or too large. */
void extract_request(const struct fields *request, struct answer *answer) {
  const char *root = required(request, "root", answer);
  int64_t most = 0;
  if (root == NULL) return;
  if (!field_number(request, "most", &most)) {
    refuse(answer, "bad-request", EINVAL, "request", "most must be a number");
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
      int result = source < 0 ? -1 : copy_out(source, parts[1], most);
      if (result != 0 && (errno == ENOSPC || errno == EDQUOT)) refuse_errno(answer, "extract", parts[1]);
      else if (result != 0) put_row(&answer->fields, "skipped", parts[0], FRAME_MAX / 2);
      if (source >= 0) close(source);
    }
    free(copy);
  }
  close(folder);
}
