/* Asynchronous requests of libaio, which databases use. The machine counts them for all programs together (fs.aio-max-nr), so
   the filter stops every io_setup until process 1 has looked at that count: sandboxes never take the half of it that the
   machine's own programs may need. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define UNDER_WAY_MS 500 /* how long the kernel may take to count what was allowed, at least */

static struct source questions = {.fd = -1};
static int used = -1, most = -1;
static struct {
  int64_t since;
  uint64_t now, before; /* allowed in this span of time, and in the one before */
} allowed;

/* 0 when it can't be read: then nothing is free. */
static uint64_t number_in(int fd) {
  char text[32];
  ssize_t length = pread(fd, text, sizeof text - 1, 0);
  text[length > 0 ? length : 0] = '\0';
  return strtoull(text, NULL, 10);
}

static uint64_t under_way(void) {
  int64_t time = now_ms(), passed = time - allowed.since;
  if (passed >= UNDER_WAY_MS) {
    allowed.before = passed < 2 * UNDER_WAY_MS ? allowed.now : 0;
    allowed.now = 0;
    allowed.since = time;
  }
  return allowed.now + allowed.before;
}

static bool leaves_half(uint32_t wanted) {
  uint64_t taken = number_in(used) + under_way() + wanted;
  if (taken > number_in(most) / 2) return false;
  allowed.now += wanted;
  return true;
}

/* One question for each time the descriptor is ready: then the kernel never lets the reader wait, also if who asked has
   died meanwhile. */
static void question_ready(struct source *source, uint32_t events) {
  struct seccomp_notif question = {0};
  if ((events & EPOLLIN) == 0) return source_close(source);
  if (ioctl(source->fd, SECCOMP_IOCTL_NOTIF_RECV, &question) != 0) return;
  struct seccomp_notif_resp answer = {.id = question.id};
  if (leaves_half((uint32_t)question.data.args[0])) answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  else answer.error = -EAGAIN;
  ioctl(source->fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

void aio_listen(void) {
  if (plan->aio < 0) return;
  used = open("/proc/sys/fs/aio-nr", O_RDONLY | O_CLOEXEC);
  most = open("/proc/sys/fs/aio-max-nr", O_RDONLY | O_CLOEXEC);
  questions = (struct source){.fd = plan->aio, .ready = question_ready};
  /* Without a reader, io_setup gives ENOSYS. */
  if (used < 0 || most < 0 || source_watch(&questions, EPOLLIN) != 0) source_close(&questions);
}
