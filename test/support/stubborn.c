/* Processes that do not end when they are asked, one kind by name: each waits in a way of its own, with a child where it needs one. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void wait_deaf(void) {
  for (;;) pause();
}

static void ignore_everything(void) {
  for (int number = 1; number < NSIG; number++) signal(number, SIG_IGN);
}

/* The child stands still, and only its tracer could let it go on. */
static void trace(void) {
  pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  wait_deaf();
}

/* The parent sleeps without hearing until the child is over. */
static void wait_for_child(void) {
  if (vfork() == 0) {
    for (;;) pause();
  }
}

static void bury_nobody(void) {
  signal(SIGCHLD, SIG_DFL);
  for (int count = 0; count < 200; count++)
    if (fork() == 0) _exit(0);
  wait_deaf();
}

int main(int count, char **words) {
  const char *kind = count > 1 ? words[1] : "";
  ignore_everything();
  if (strcmp(kind, "stopped") == 0) raise(SIGSTOP);
  if (strcmp(kind, "traced") == 0) trace();
  if (strcmp(kind, "vfork") == 0) wait_for_child();
  if (strcmp(kind, "zombies") == 0) bury_nobody();
  wait_deaf();
}
