/* Kernel calls that take long and need no process of their own: the loop goes on meanwhile, and no memory is copied for them. The stacks
   are small, and there is one heap, because every launch copies the helper's memory. The program has no large thread-local memory: it
   would be taken from each of these stacks, and a thread with too small a stack does not start. */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define THREADS_MOST 16
#define STACK_BYTES (64u << 10)
#define CLOSE_LATER_NANOSECONDS 12000000 /* a rollback has its new processes by then */
#define CLOSED_TOGETHER 64

/* A request, or descriptors that are only to be closed. */
struct work {
  struct work *next;
  handler handle; /* NULL: `closes` */
  int closes[CLOSED_TOGETHER];
  size_t close_count;
  char id[24];
  struct fields request; /* a copy */
  struct answer answer;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given = PTHREAD_COND_INITIALIZER;
static struct work *first, **last = &first;
static size_t threads, idle, queued;
static int answers = -1; /* the end of a pipe into which threads write the addresses of what they have done */
static struct work *closing; /* what will be closed when the timer has run out */

static void close_all(struct work *work) {
  for (size_t index = 0; index < work->close_count; index++) close(work->closes[index]);
  free(work);
}

static struct work *take_work(void) {
  pthread_mutex_lock(&lock);
  idle++;
  while (first == NULL) pthread_cond_wait(&given, &lock);
  idle--;
  struct work *work = first;
  first = work->next;
  queued--;
  if (first == NULL) last = &first;
  pthread_mutex_unlock(&lock);
  return work;
}

static void *serve(void *unused) {
  (void)unused;
  for (;;) {
    struct work *work = take_work();
    if (work->handle == NULL) {
      close_all(work);
      continue;
    }
    work->handle(&work->request, &work->answer);
    while (write(answers, &work, sizeof work) < 0 && errno == EINTR) continue;
  }
  return NULL;
}

static void work_done(struct source *source, uint32_t events) {
  (void)events;
  struct work *work;
  while (read(source->fd, &work, sizeof work) == (ssize_t)sizeof work) {
    channel_reply(work->id, &work->answer);
    free((char *)work->request.data); /* the copy of thread_start */
    free(work);
  }
}

static bool open_answers(void) {
  static struct source source = {.fd = -1, .ready = work_done};
  int ends[2];
  if (answers >= 0) return true;
  mallopt(M_ARENA_MAX, 1);
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  source.fd = ends[0];
  if (fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 && loop_add(&source, EPOLLIN) == 0) {
    answers = ends[1];
    return true;
  }
  close(ends[0]);
  close(ends[1]);
  return false;
}

/* Signals are for the loop. */
static bool start_thread(void) {
  pthread_t thread;
  pthread_attr_t small;
  sigset_t all, before;
  if (pthread_attr_init(&small) != 0) return false;
  pthread_attr_setstacksize(&small, STACK_BYTES);
  pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = pthread_create(&thread, &small, serve, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&small);
  return started;
}

/* False where no thread can be had: then the caller does it. */
static bool give(struct work *work) {
  if (!open_answers()) return false;
  pthread_mutex_lock(&lock);
  bool wanted = queued >= idle && threads < THREADS_MOST;
  pthread_mutex_unlock(&lock);
  if (wanted && start_thread()) threads++;
  if (threads == 0) return false;
  pthread_mutex_lock(&lock);
  *last = work;
  last = &work->next;
  queued++;
  pthread_cond_signal(&given);
  pthread_mutex_unlock(&lock);
  return true;
}

void thread_start(const struct fields *request, const char *id, handler handle) {
  struct work *work = calloc(1, sizeof *work);
  char *copy = malloc(request->length + 1);
  if (work != NULL && copy != NULL) {
    memcpy(copy, request->data, request->length);
    work->handle = handle;
    strncpy(work->id, id, sizeof work->id - 1);
    work->request = (struct fields){.data = copy, .length = request->length};
    if (give(work)) return;
  }
  free(copy);
  free(work);
  struct answer answer = {0};
  handle(request, &answer);
  channel_reply(id, &answer);
}

static void close_now(void) {
  struct work *work = closing;
  closing = NULL;
  if (work != NULL && !give(work)) close_all(work);
}

static void close_is_due(struct source *source, uint32_t events) {
  uint64_t times;
  (void)events;
  if (read(source->fd, &times, sizeof times) == (ssize_t)sizeof times) close_now();
}

static bool wake_later(void) {
  static struct source timer = {.fd = -1, .ready = close_is_due};
  struct itimerspec later = {.it_value.tv_nsec = CLOSE_LATER_NANOSECONDS};
  if (timer.fd < 0) {
    timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer.fd >= 0 && loop_add(&timer, EPOLLIN) != 0) {
      close(timer.fd);
      timer.fd = -1;
    }
  }
  return timer.fd >= 0 && timerfd_settime(timer.fd, 0, &later, NULL) == 0;
}

/* The last descriptor of a sandbox's mounts has all of the pool written to the disk that is not there yet. A moment later what the caller
   waits for is done, and several that are closed together share that. */
void thread_close(int fd) {
  if (closing == NULL && (closing = calloc(1, sizeof *closing)) == NULL) {
    close(fd);
    return;
  }
  closing->closes[closing->close_count++] = fd;
  bool unwoken = closing->close_count == 1 && !wake_later();
  if (unwoken || closing->close_count == CLOSED_TOGETHER) close_now();
}
