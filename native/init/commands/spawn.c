/* The child's side of exec: from a fork of process 1 to the program, one wall after the other. */
#include "commands.h"
#include "../walls/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STATUS 3 /* where the status pipe lies when every other descriptor is closed */
#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static bool fail(struct failure *failure, const char *step, const char *code) {
  failure->error = errno;
  strcpy(failure->step, step);
  strcpy(failure->code, code != NULL ? code : code_of_errno(errno));
  return false;
}

bool enter_cgroups(struct failure *failure) {
  static bool entered;
  for (size_t at = 0; at < plan->work_cgroup_count && !entered; at++) {
    if (write(plan->work_cgroups[at], "0", 1) != 1) return fail(failure, "cgroup", NULL);
  }
  entered = true;
  return true;
}

/* A group that does not exist in this sandbox is left out: the kernel takes all or none. */
static bool take_groups(const struct identity *identity) {
  gid_t known[sizeof identity->groups / sizeof identity->groups[0]];
  size_t count = 0;
  if (setgroups(identity->group_count, identity->groups) == 0) return true;
  if (errno != EINVAL) return false;
  for (size_t at = 0; at < identity->group_count; at++)
    if (setgroups(1, &identity->groups[at]) == 0) known[count++] = identity->groups[at];
  return setgroups(count, known) == 0;
}

static bool take_ids(const struct identity *identity, struct failure *failure) {
  if (!take_groups(identity)) return fail(failure, "user", NULL);
  /* EINVAL means an id that is not mapped: it does not exist in this sandbox. */
  if (setresgid(identity->gid, identity->gid, identity->gid) != 0) return fail(failure, "user", errno == EINVAL ? "no-user" : NULL);
  if (setresuid(identity->uid, identity->uid, identity->uid) != 0) return fail(failure, "user", errno == EINVAL ? "no-user" : NULL);
  return true;
}

bool become(const struct identity *identity, struct failure *failure) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct none[2] = {0};
  if (!plan->single_user && !take_ids(identity, failure)) return false;
  if (identity->uid != 0 && syscall(SYS_capset, &header, none) != 0) return fail(failure, "user", NULL);
  prctl(PR_SET_DUMPABLE, 0); /* still a copy of process 1, now with an id that others inside have too */
  return true;
}

bool find_identity(const char *user, struct identity *identity, struct failure *failure) {
  const char *problem = resolve_user(user, plan->single_user, identity);
  errno = EINVAL;
  return problem == NULL || fail(failure, "user", problem);
}

static bool take_streams(const struct exec_request *exec, const int streams[3], int *status, struct failure *failure) {
  int in = streams[0], out = exec->tty ? in : streams[1], err = exec->tty ? in : streams[2];
  if (in < 0) in = open("/dev/null", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (in < 0) return fail(failure, "stdin", NULL);
  /* Lifted first: a low number might be in the way of the ones below. */
  int lifted[4] = {fcntl(in, F_DUPFD, 16), fcntl(out, F_DUPFD, 16), fcntl(err, F_DUPFD, 16), fcntl(*status, F_DUPFD, 16)};
  for (int at = 0; at < 4; at++) {
    if (lifted[at] < 0 || dup3(lifted[at], at, at == STATUS ? O_CLOEXEC : 0) < 0) return fail(failure, "stdin", NULL);
  }
  *status = STATUS;
  if (syscall(SYS_close_range, STATUS + 1, ~0U, 0) != 0) return fail(failure, "stdin", NULL);
  if (exec->tty && ioctl(0, TIOCSCTTY, 0) != 0) return fail(failure, "terminal", NULL);
  return true;
}

static bool take_limits(struct failure *failure) {
  restore_limits();
  for (size_t at = 0; at < plan->rlimit_count; at++) {
    int resource = plan->rlimits[at].resource;
    struct rlimit present, limit = {plan->rlimits[at].soft, plan->rlimits[at].hard};
    if (getrlimit((__rlimit_resource_t)resource, &present) != 0) return fail(failure, "limits", NULL);
    if (limit.rlim_max > present.rlim_max) limit.rlim_max = present.rlim_max; /* only the host may raise */
    if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
    if (setrlimit((__rlimit_resource_t)resource, &limit) != 0) return fail(failure, "limits", NULL);
  }
  return true;
}

/* Which processors a program may use is what most of them size themselves by. It may choose others. */
bool take_cpus(struct failure *failure) {
  static cpu_set_t taken; /* by this process or the one it was forked from */
  const struct shown_limits *limits = plan->limits;
  if (limits == NULL || CPU_COUNT(&limits->chosen) == 0) return true;
  if (CPU_EQUAL(&limits->chosen, CPU_COUNT(&taken) == 0 ? &limits->allowed : &taken)) return true;
  if (sched_setaffinity(0, sizeof limits->chosen, &limits->chosen) != 0) return fail(failure, "limits", NULL);
  taken = limits->chosen;
  return true;
}

/* While still privileged: without no_new_privs, only that may install a filter or shrink the bounding set. */
static bool take_guards(struct failure *failure) {
  if (!plan->keep_privileges && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail(failure, "guard", NULL);
  if (install_seccomp(NULL) != 0) return fail(failure, "guard", "failed");
  if (drop_capabilities() != 0) return fail(failure, "guard", "failed");
  return true;
}

/* With room for `more` entries. */
static char **list_of(const struct fields *request, const char *key, size_t more) {
  char **list = calloc(field_count(request, key) + more + 1, sizeof *list);
  size_t at = 0;
  if (list == NULL) return NULL;
  for (const char *value = field(request, key); value != NULL; value = field_next(request, key, value)) list[at++] = (char *)value;
  return list;
}

#define ACCOUNT_VARIABLES 4

/* What a login would set, from the account inside, unless the caller set it. */
static void add_variable(char **environment, const char *name, const char *value) {
  size_t length = strlen(name);
  if (*value == '\0') return;
  for (; *environment != NULL; environment++) {
    if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') return;
  }
  if (asprintf(environment, "%s=%s", name, value) < 0) *environment = NULL;
}

static void add_account(char **environment, const struct identity *identity) {
  add_variable(environment, "HOME", identity->home[0] != '\0' ? identity->home : "/");
  add_variable(environment, "USER", identity->name);
  add_variable(environment, "LOGNAME", identity->name);
  add_variable(environment, "SHELL", identity->shell);
}

static const char *search_path(char **environment) {
  for (; *environment != NULL; environment++) {
    if (strncmp(*environment, "PATH=", 5) == 0) return *environment + 5;
  }
  return PATH_DEFAULT;
}

/* Returns only on failure, with the errno that says most. */
static void run(char **arguments, char **environment) {
  const char *name = arguments[0];
  if (strchr(name, '/') != NULL) {
    execve(name, arguments, environment);
    return;
  }
  int error = ENOENT;
  char path[4096];
  for (const char *at = search_path(environment), *end; ; at = end + 1) {
    end = strchrnul(at, ':');
    int length = snprintf(path, sizeof path, "%.*s%s%s", (int)(end - at), at, end == at ? "" : "/", name);
    if (length > 0 && (size_t)length < sizeof path) {
      execve(path, arguments, environment);
      if (errno == EACCES) error = EACCES;
      else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE) return;
    }
    if (*end == '\0') break;
  }
  errno = error;
}

static bool prepare(const struct exec_request *exec, const int streams[3], int *status, struct identity *identity, struct failure *failure) {
  setsid();
  umask(022);
  /* The descriptors of process 1 go before anything is opened for the user. */
  if (!enter_cgroups(failure) || !take_streams(exec, streams, status, failure)) return false;
  if (!find_identity(exec->user, identity, failure)) return false;
  if (exec->tty && !plan->single_user && fchown(0, identity->uid, (gid_t)-1) != 0) return fail(failure, "terminal", NULL);
  if (!take_limits(failure) || !take_cpus(failure) || !take_guards(failure) || !become(identity, failure)) return false;
  /* As the user, and with nothing open that /proc/self/fd could lead to. */
  if (chdir(exec->cwd != NULL ? exec->cwd : "/") != 0) return fail(failure, "cwd", NULL);
  return true;
}

void spawn(const struct fields *request, const struct exec_request *exec, const int streams[3], int status) {
  struct failure failure = {0};
  struct identity identity;
  char **arguments = list_of(request, "arg", 0), **environment = list_of(request, "env", ACCOUNT_VARIABLES);
  errno = ENOMEM;
  if (arguments == NULL || environment == NULL) fail(&failure, "exec", NULL);
  else if (prepare(exec, streams, &status, &identity, &failure)) {
    add_account(environment, &identity);
    run(arguments, environment);
    fail(&failure, "exec", errno == EACCES || errno == EPERM || errno == ENOEXEC ? "not-runnable" : NULL);
  }
  if (write(status, &failure, sizeof failure) < 0) _exit(126);
  _exit(127);
}
