/* Keys, signals and the size of the terminal, on their way to the server: by a thread of its own, since output may wait for its reader. */
#include "front.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Input that the command has not taken yet: more is not read, so that what feeds this process waits. */
#define WINDOW_BYTES (4 * CHUNK_MAX)

static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};

static pthread_mutex_t sending = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread;
static bool runs;
static int wake = -1, signals = -1, to_server = -1;
static atomic_bool ending, reads, forwards;
static atomic_size_t unread;

int send_to_server(int server, uint8_t kind, const void *payload, size_t length) {
  pthread_mutex_lock(&sending);
  int result = send_frame(server, kind, payload, length);
  pthread_mutex_unlock(&sending);
  return result;
}

static void send_signal(int number) {
  struct output output = {0};
  if (number == SIGWINCH) {
    put_terminal_size(&output, "rows", "cols", STDOUT_FILENO);
    put_terminal_size(&output, "stderr_rows", "stderr_cols", STDERR_FILENO);
  } else {
    put(&output, "signal", "%d", number);
  }
  send_to_server(to_server, number == SIGWINCH ? RESIZE : SIGNAL, output.data, output.length);
  output_free(&output);
}

/* False at the end, and where there is nothing to read: both are an input that is over. */
static bool pass_input(char *data) {
  ssize_t count = read(STDIN_FILENO, data, CHUNK_MAX);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (count <= 0) {
    send_to_server(to_server, STDIN_END, NULL, 0);
    return false;
  }
  atomic_fetch_add(&unread, (size_t)count);
  return send_to_server(to_server, STDIN, data, (size_t)count) == 0;
}

static void pass_signal(void) {
  struct signalfd_siginfo information;
  if (read(signals, &information, sizeof information) == (ssize_t)sizeof information) send_signal((int)information.ssi_signo);
}

static void *pass_on(void *nothing) {
  static char data[CHUNK_MAX];
  (void)nothing;
  bool over = false;
  while (!atomic_load(&ending)) {
    bool takes = atomic_load(&reads) && !over && atomic_load(&unread) < WINDOW_BYTES;
    struct pollfd ready[] = {
        {.fd = wake, .events = POLLIN}, {.fd = atomic_load(&forwards) ? signals : -1, .events = POLLIN}, {.fd = takes ? STDIN_FILENO : -1, .events = POLLIN}};
    if (poll(ready, 3, -1) < 0) continue;
    uint64_t count;
    if (ready[0].revents != 0 && read(wake, &count, sizeof count) < 0) break;
    if (ready[1].revents != 0) pass_signal();
    /* What changed meanwhile counts: a session may have ended. */
    if (ready[2].revents != 0 && atomic_load(&reads) && !pass_input(data)) over = true;
  }
  return NULL;
}

static void knock(void) {
  uint64_t one = 1;
  if (wake >= 0 && write(wake, &one, sizeof one) < 0) abort();
}

static void begin(const struct session *session) {
  if (runs) return;
  to_server = session->server;
  wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) abort();
  runs = pthread_create(&thread, NULL, pass_on, NULL) == 0;
  if (!runs) abort();
}

static void forwarded_set(sigset_t *set) {
  sigemptyset(set);
  for (size_t at = 0; at < sizeof forwarded / sizeof forwarded[0]; at++) sigaddset(set, forwarded[at]);
}

/* From now on signals are the command's, or this process's again. The thread is made after they are blocked, and never unblocks them. */
void set_signals(struct session *session, bool on) {
  sigset_t set;
  forwarded_set(&set);
  pthread_sigmask(on ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
  if (on && signals < 0) signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  atomic_store(&forwards, on);
  if (!on) atomic_store(&reads, false);
  if (on) begin(session);
  knock();
}

void set_input(struct session *session, bool on) {
  atomic_store(&reads, on);
  begin(session);
  knock();
}

void more_input(size_t bytes) {
  size_t waiting = atomic_load(&unread);
  atomic_fetch_sub(&unread, bytes < waiting ? bytes : waiting);
  knock();
}

/* The process ends: a read that waits for keys is not waited for. */
void end_input_thread(void) {
  atomic_store(&ending, true);
  knock();
}
