/* Requests that take long run in a forked child each; its one frame is forwarded with the request's id. A launch is told of its disk by
   a second request, which goes to the child as it came. */
#include "host.h"
#include "../launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS_MAX 1024
#define RESULT 3 /* the descriptor on which a child writes its frame */

struct job {
  struct source source;
  struct job *next;
  pid_t child;
  char id[24];
  char *sandbox; /* of a launch */
  bool waits;    /* for its disk */
  struct output received, unsent;
  bool answered;
};

static struct job *jobs;
static size_t job_count;

bool launch_is_running(pid_t child) {
  for (struct job *job = jobs; job != NULL; job = job->next)
    if (job->child == child) return true;
  return false;
}

static void job_fail(struct job *job, const char *message) {
  struct answer answer = {0};
  refuse(&answer, "failed", 0, "child", "%s", message);
  channel_reply(job->id, &answer);
  job->answered = true;
}

static void job_forward(struct job *job, const struct header *header) {
  struct fields fields = {.data = job->received.data + sizeof *header, .length = header->length};
  if (!fields_valid(&fields)) {
    job_fail(job, "the child's answer cannot be read");
    return;
  }
  struct output output = {0};
  put(&output, "id", "%s", job->id);
  bool complete = header->kind == ERROR || field(&fields, "ok") != NULL;
  if (!complete) put(&output, "ok", "1");
  if (fields.length > 0) put_bytes(&output, fields.data, fields.length);
  channel_frame(header->kind, output.data, output.length);
  output_free(&output);
  job->answered = true;
  if (job->sandbox != NULL && header->kind == REPLY) process_watch_launched(&fields, job->sandbox, job->child);
}

static void job_pump(struct job *job) {
  char chunk[CHUNK_MAX];
  while (!job->answered) {
    ssize_t count = read(job->source.fd, chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      job_fail(job, "the child ended without an answer");
      break;
    }
    put_bytes(&job->received, chunk, (size_t)count);
    struct header header;
    if (job->received.length < sizeof header) continue;
    memcpy(&header, job->received.data, sizeof header);
    if (header.length > FRAME_MAX || (header.kind != REPLY && header.kind != ERROR)) job_fail(job, "the child's answer is no frame");
    else if (job->received.length >= sizeof header + header.length) job_forward(job, &header);
  }
  loop_remove(&job->source);
}

/* A child that ended meanwhile has answered, or is found to have ended. */
static void job_send(struct job *job) {
  size_t sent = 0;
  while (sent < job->unsent.length) {
    ssize_t count = send(job->source.fd, job->unsent.data + sent, job->unsent.length - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      if (errno != EAGAIN) sent = job->unsent.length;
      break;
    }
    sent += (size_t)count;
  }
  if (sent > 0) memmove(job->unsent.data, job->unsent.data + sent, job->unsent.length - sent);
  job->unsent.length -= sent;
  loop_change(&job->source, EPOLLIN | (job->unsent.length > 0 ? EPOLLOUT : 0u));
}

static void job_ready(struct source *source, uint32_t events) {
  struct job *job = (struct job *)source;
  if (events & EPOLLOUT) job_send(job);
  if (events & ~(uint32_t)EPOLLOUT) job_pump(job);
}

static struct job *waiting_launch(const char *sandbox) {
  for (struct job *job = jobs; job != NULL; job = job->next)
    if (job->waits && !job->answered && strcmp(job->sandbox, sandbox) == 0) return job;
  return NULL;
}

void launch_disk(const struct fields *request, struct answer *answer) {
  const char *sandbox = required(request, "sandbox", answer);
  struct job *job = sandbox == NULL ? NULL : waiting_launch(sandbox);
  if (sandbox == NULL) return;
  if (job == NULL) {
    refuse(answer, "not-found", ESRCH, "launch", "no launch of %s waits for its disk", sandbox);
    return;
  }
  job->waits = false;
  if (field_flag(request, "cancel")) {
    shutdown(job->source.fd, SHUT_WR);
    return;
  }
  struct header header = {.length = (uint32_t)request->length, .kind = REQUEST};
  put_bytes(&job->unsent, &header, sizeof header);
  put_bytes(&job->unsent, request->data, request->length);
  job_send(job);
}

static int run_child(const struct fields *request, handler handle, int how, int result, pid_t host) {
  if (how & DIES_WITH_HOST) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != host) return 1;
  }
  if (unprotect_from_oom() != 0) return 1;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGPIPE, SIG_DFL);
  if (dup3(result, RESULT, O_CLOEXEC) < 0) return 1;
  close_range(RESULT + 1, ~0u, 0);
  if (handle == NULL) return launch_main(request, RESULT);
  struct answer answer = {0};
  handle(request, &answer);
  if (answer.failed) return send_error(RESULT, NULL, answer.code, answer.error, answer.step, answer.message) == 0 ? 1 : 2;
  return send_output(RESULT, REPLY, &answer.fields) == 0 ? 0 : 2;
}

static struct job *job_new(const struct fields *request, const char *id, bool launch) {
  struct job *job = calloc(1, sizeof *job);
  if (job == NULL) return NULL;
  strncpy(job->id, id, sizeof job->id - 1);
  const char *sandbox = field(request, "sandbox");
  if (launch) job->sandbox = strdup(sandbox == NULL ? "" : sandbox);
  job->waits = launch && field_flag(request, "disk_later");
  return job;
}

static void job_free(struct job *job) {
  output_free(&job->received);
  output_free(&job->unsent);
  free(job->sandbox);
  free(job);
}

void job_start(const struct fields *request, const char *id, handler handle, int how) {
  struct answer answer = {0};
  int ends[2] = {-1, -1};
  struct job *job = NULL;
  pid_t host = getpid(), child = -1;
  if (job_count >= JOBS_MAX) refuse(&answer, "too-many", EAGAIN, "fork", "%d requests are under way", JOBS_MAX);
  else if ((job = job_new(request, id, handle == NULL)) == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    refuse_errno(&answer, "fork", "channel");
  else if ((child = fork()) == 0) _exit(run_child(request, handle, how, ends[1], host));
  else if (child < 0) refuse_errno(&answer, "fork", "fork");
  if (ends[1] >= 0) close(ends[1]);
  if (answer.failed) {
    if (ends[0] >= 0) close(ends[0]);
    if (job != NULL) job_free(job);
    channel_reply(id, &answer);
    return;
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  job->source = (struct source){.fd = ends[0], .ready = job_ready};
  job->child = child;
  job->next = jobs;
  jobs = job;
  job_count++;
  loop_add(&job->source, EPOLLIN);
}

static bool job_reaped(pid_t child) {
  for (struct job **link = &jobs; *link != NULL; link = &(*link)->next) {
    struct job *job = *link;
    if (job->child != child) continue;
    if (!job->answered) job_pump(job);
    /* Something the child left behind may hold the pipe open, so its end alone does not tell. */
    if (!job->answered) job_fail(job, "the child ended without an answer");
    loop_remove(&job->source);
    *link = job->next;
    job_count--;
    job_free(job);
    return true;
  }
  return false;
}

void jobs_reap(void) {
  for (;;) {
    siginfo_t info = {0};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    pid_t pid = info.si_pid;
    /* A launcher's answer names its process 1: read every answer before the zombie's number is free again. */
    for (struct job *job = jobs; job != NULL; job = job->next)
      if (!job->answered) job_pump(job);
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) != pid) continue;
    if (!job_reaped(pid)) process_reaped(pid, status);
  }
}
