/* Runs a program of the host to its end. The server is large, and a fork of it takes long; this process is small. */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAID_MAX 4096  /* of what it writes to stderr, the end */
#define LOOK_MS 100    /* how often the length of its output is looked at */

struct program {
  char **words, **environment;
  const char *folder;
  int input, output, trouble; /* its three streams */
  int failed;                 /* written to when it can't be run */
};

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

/* The values of a repeated field, after `first` if that is given; ended by NULL. */
static char **list(const struct fields *request, const char *key, const char *first) {
  char **values = calloc(field_count(request, key) + 2, sizeof *values);
  size_t count = 0;
  if (values != NULL && first != NULL) values[count++] = (char *)first;
  for (const char *value = field(request, key); values != NULL && value != NULL; value = field_next(request, key, value)) values[count++] = (char *)value;
  return values;
}

static void become(const struct program *program, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  bool ready = getppid() == parent && dup2(program->input, 0) == 0 && dup2(program->output, 1) == 1 && dup2(program->trouble, 2) == 2 &&
               (program->folder == NULL || chdir(program->folder) == 0);
  if (ready) execvpe(program->words[0], program->words, program->environment);
  int error = errno;
  if (write(program->failed, &error, sizeof error) < 0) _exit(126);
  _exit(127);
}

/* Keeps the end of what is said. */
static void listen_to(int fd, char *said, size_t *length) {
  for (;;) {
    char chunk[SAID_MAX];
    ssize_t count = read(fd, chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    size_t keep = *length + (size_t)count > SAID_MAX ? SAID_MAX - (size_t)count : *length;
    memmove(said, said + *length - keep, keep);
    memcpy(said + keep, chunk, (size_t)count);
    *length = keep + (size_t)count;
  }
}

/* Waits for the end, or brings it about; NULL, or why. */
static const char *await_end(int child, int heard, int output, int64_t deadline, int64_t most, char *said, size_t *length) {
  struct pollfd waiting[2] = {{.fd = child, .events = POLLIN}, {.fd = heard, .events = POLLIN}};
  for (;;) {
    struct stat status;
    if (fstat(output, &status) == 0 && status.st_size > most) return "output";
    int64_t left = deadline - now_ms();
    if (left <= 0) return "time";
    if (poll(waiting, 2, left < LOOK_MS ? (int)left : LOOK_MS) < 0 && errno != EINTR) return "poll";
    if (waiting[1].revents != 0) listen_to(heard, said, length);
    if (waiting[1].revents & (POLLHUP | POLLERR)) waiting[1].fd = -1;
    if (waiting[0].revents == 0) continue;
    listen_to(heard, said, length);
    return fstat(output, &status) == 0 && status.st_size > most ? "output" : NULL;
  }
}

static void answer_end(struct answer *answer, int status, const char *why, char *said, size_t length) {
  for (size_t at = 0; at < length; at++)
    if (said[at] == '\0') said[at] = ' '; /* a field holds no NUL */
  said[length] = '\0';
  if (why != NULL) put(&answer->fields, "ended", "%s", why);
  if (WIFEXITED(status)) put(&answer->fields, "exit", "%d", WEXITSTATUS(status));
  else put(&answer->fields, "signal", "%d", WTERMSIG(status));
  put(&answer->fields, "stderr", "%s", said);
}

static void run_program(struct program *program, int64_t timeout, int64_t most, struct answer *answer) {
  char said[SAID_MAX + 1];
  size_t length = 0;
  int heard[2], failed[2], error = 0, status = 0;
  if (pipe2(heard, O_CLOEXEC) != 0 || pipe2(failed, O_CLOEXEC) != 0) return refuse_errno(answer, "run", "pipe");
  fcntl(heard[0], F_SETFL, O_NONBLOCK);
  program->trouble = heard[1];
  program->failed = failed[1];
  pid_t parent = getpid(), child = fork();
  if (child == 0) become(program, parent);
  if (child < 0) return refuse_errno(answer, "run", "fork");
  setpgid(child, child);
  close(heard[1]);
  close(failed[1]);
  if (read(failed[0], &error, sizeof error) == sizeof error) {
    waitpid(child, &status, 0);
    errno = error;
    return refuse_errno(answer, "run", program->words[0]);
  }
  int ended = (int)syscall(SYS_pidfd_open, child, 0);
  const char *why = ended < 0 ? "poll" : await_end(ended, heard[0], program->output, now_ms() + timeout, most, said, &length);
  if (why != NULL) kill(-child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  answer_end(answer, status, why, said, length);
}

/* program=, arg= (repeated), env= (repeated), cwd=, stdin=<file> or nothing, stdout=<new file>, timeout= (ms), most= (bytes of stdout).
   Reply: exit= or signal=, stderr= (its end), ended=time|output if it was killed for that. */
void run_request(const struct fields *request, struct answer *answer) {
  const char *name = required(request, "program", answer), *output = required(request, "stdout", answer);
  const char *input = field(request, "stdin");
  int64_t timeout = 0, most = 0;
  if (answer->failed) return;
  if (!field_number(request, "timeout", &timeout) || !field_number(request, "most", &most)) {
    refuse(answer, "bad-request", EINVAL, "request", "timeout and most must be numbers");
    return;
  }
  struct program program = {.words = list(request, "arg", name), .environment = list(request, "env", NULL), .folder = field(request, "cwd")};
  program.input = open(input == NULL ? "/dev/null" : input, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (program.input < 0) return refuse_errno(answer, "run", input == NULL ? "/dev/null" : input);
  program.output = open(output, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (program.output < 0) return refuse_errno(answer, "run", output);
  if (program.words == NULL || program.environment == NULL) return refuse_errno(answer, "run", name);
  /* The program is looked for where its own variables say. */
  for (char **variable = program.environment; *variable != NULL; variable++)
    if (strncmp(*variable, "PATH=", 5) == 0) setenv("PATH", *variable + 5, 1);
  run_program(&program, timeout, most, answer);
}
