/* File operations, each in a child with the user's rights: plain blocking code that harms no process but its own. */
#include "files.h"
#include "job.h"
#include "../commands/commands.h"
#include "../walls/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
  const char *op;
  void (*run)(struct job *job);
  bool lasting; /* ends with its connection, not by the clock */
} operations[] = {
    {"file.read", file_read, false},     {"file.write", file_write, false},   {"file.list", file_list, false},
    {"file.stat", file_stat, false},     {"file.move", file_move, false},     {"file.remove", file_remove, false},
    {"file.mkdir", file_mkdir, false},   {"file.watch", file_watch, true},     {"file.apply", file_apply, false},
};

static int find(const char *op) {
  for (size_t at = 0; at < sizeof operations / sizeof operations[0]; at++) {
    if (strcmp(op, operations[at].op) == 0) return (int)at;
  }
  return -1;
}

bool file_known(const char *op) { return find(op) >= 0; }

void job_fail(struct job *job, int error, const char *step, const char *code, const char *message) {
  flush(job);
  send_error(job->fd, NULL, code != NULL ? code : code_of_errno(error), error, step, message);
  /* Closing while an upload is still on its way would break the client's pipe before it reads the error. */
  shutdown(job->fd, SHUT_WR);
  while (read(job->fd, job->buffer, sizeof job->buffer) > 0) continue;
  _exit(1);
}

void flush(struct job *job) {
  if (job->length > 0 && write_all(job->fd, job->buffer, job->length) != 0) _exit(1);
  job->length = 0;
}

void job_send(struct job *job, uint8_t kind, const void *payload, size_t length) {
  struct header header = {.length = (uint32_t)length, .kind = kind};
  if (job->length + sizeof header + length > sizeof job->buffer) flush(job);
  memcpy(job->buffer + job->length, &header, sizeof header);
  if (length > 0) memcpy(job->buffer + job->length + sizeof header, payload, length);
  job->length += sizeof header + length;
}

void job_reply(struct job *job) {
  job_send(job, REPLY, "ok=1", 5);
  flush(job);
}

static bool receive(struct job *job, void *data, size_t length) {
  size_t early = length < job->early_length ? length : job->early_length;
  memcpy(data, job->early, early);
  job->early += early;
  job->early_length -= early;
  return length == early || read_all(job->fd, (char *)data + early, length - early) == 0;
}

bool job_receive(struct job *job, char *data, uint8_t *kind, size_t *length) {
  struct header header;
  if (!receive(job, &header, sizeof header)) return false;
  if (header.length > CHUNK_MAX || header.reserved[0] || header.reserved[1] || header.reserved[2]) return false;
  *kind = header.kind;
  *length = header.length;
  return receive(job, data, header.length);
}

static const char *type_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG: return "file";
    case S_IFDIR: return "dir";
    case S_IFLNK: return "link";
    case S_IFIFO: return "fifo";
    case S_IFSOCK: return "socket";
    case S_IFCHR: return "char";
    default: return "block";
  }
}

void put_stat(struct output *output, const char *path, const struct stat *stat) {
  put(output, "path", "%s", path);
  put(output, "type", "%s", type_of(stat->st_mode));
  put(output, "size", "%lld", (long long)stat->st_size);
  put(output, "mode", "%o", (unsigned)(stat->st_mode & 07777));
  put(output, "mtime_ms", "%lld", (long long)stat->st_mtim.tv_sec * 1000 + stat->st_mtim.tv_nsec / 1000000);
  put(output, "uid", "%u", (unsigned)stat->st_uid);
  put(output, "gid", "%u", (unsigned)stat->st_gid);
}

void put_entry(struct output *output, int folder, const char *name, const char *path, const struct stat *stat) {
  put_stat(output, path, stat);
  char target[4096];
  ssize_t length = S_ISLNK(stat->st_mode) ? readlinkat(folder, name, target, sizeof target - 1) : -1;
  if (length < 0) return;
  target[length] = '\0';
  put(output, "target", "%s", target);
}

static void keep_only(struct job *job) {
  if (dup3(job->fd, 3, O_CLOEXEC) < 0 && job->fd != 3) _exit(1);
  job->fd = 3;
  if (syscall(SYS_close_range, 4, ~0U, 0) != 0) _exit(1);
  fcntl(job->fd, F_SETFL, fcntl(job->fd, F_GETFL) & ~O_NONBLOCK);
  struct rlimit descriptors = {1024, 1024}, core = {0, 0};
  setrlimit(RLIMIT_NOFILE, &descriptors);
  setrlimit(RLIMIT_CORE, &core);
}

/* A stat waits for no process, a fifo is opened without waiting, and an alarm ends what waits all the same. */
static void child(struct job *job, int operation) __attribute__((noreturn));
static void child(struct job *job, int operation) {
  struct failure failure = {0};
  struct identity identity;
  setsid();
  umask(022);
  bool ready = enter_cgroups(&failure);
  keep_only(job);
  if (!ready || !find_identity(field(job->request, "user"), &identity, &failure)) job_fail(job, failure.error, failure.step, failure.code, NULL);
  if (drop_capabilities() != 0) job_fail(job, errno, "guard", "failed", NULL);
  if (!become(&identity, &failure)) job_fail(job, failure.error, failure.step, failure.code, NULL);
  if (!operations[operation].lasting) alarm(FILE_SECONDS_MAX);
  operations[operation].run(job);
  flush(job);
  _exit(0);
}

void file_child(int fd, const struct fields *request, const char *early, size_t early_length) {
  static struct job job;
  job.fd = fd;
  job.request = request;
  job.path = field(request, "path");
  job.early = early;
  job.early_length = early_length;
  child(&job, find(field(request, "op")));
}

static bool valid_path(const char *path) { return path != NULL && path[0] == '/' && strlen(path) < 4096; }

void file_start(struct connection *connection, const struct fields *request) {
  if (!valid_path(field(request, "path")) || (field(request, "to") != NULL && !valid_path(field(request, "to")))) {
    return connection_fail(connection, "bad-request", EINVAL, "request", "path= and to= must be absolute and shorter than 4096 bytes");
  }
  if (!file_child_allowed()) return connection_fail(connection, "too-many", EAGAIN, "fork", "too many file operations at once");
  const char *early = connection->in.data + connection->in.start;
  const int handed[4] = {connection->source.fd, -1, -1, -1};
  pid_t pid = ready_child_take(WORK_FILE, request, early, connection->in.length, handed);
  if (pid == 0) {
    pid = fork_child();
    if (pid == 0) file_child(connection->source.fd, request, early, connection->in.length);
  }
  if (pid < 0) return connection_fail(connection, code_of_errno(errno), errno, "fork", strerror(errno));
  count_file_child(pid);
  connection_close(connection);
}
