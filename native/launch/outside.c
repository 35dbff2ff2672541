/* What the launcher does in the host's namespaces: the socket, folders, and the identity of the sandbox's root. */
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* sockaddr_un holds 107 bytes; through the parent's descriptor only the last name counts. */
static int socket_address(const char *path, struct sockaddr_un *address) {
  const char *name = strrchr(path, '/') + 1;
  char parent[4096];
  if ((size_t)(name - path) >= sizeof parent || *name == '\0') {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(parent, path, (size_t)(name - path));
  parent[name - path] = '\0';
  int folder = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return -1;
  address->sun_family = AF_UNIX;
  int length = snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/%s", folder, name);
  if (length < 0 || (size_t)length >= sizeof address->sun_path) {
    close(folder);
    errno = ENAMETOOLONG;
    return -1;
  }
  return folder;
}

/* A socket file without a listener is left over from a sandbox that is gone. */
static bool stale(const struct sockaddr_un *address) {
  int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return false;
  bool refused = connect(probe, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED;
  close(probe);
  return refused;
}

int make_socket(struct launch *launch) {
  struct sockaddr_un address = {0};
  int folder = socket_address(launch->socket, &address);
  if (folder < 0) return failed(launch, "socket");
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  mode_t mask = umask(0177);
  int result = bind(listener, (struct sockaddr *)&address, sizeof address);
  if (result != 0 && errno == EADDRINUSE && stale(&address) && unlink(address.sun_path) == 0)
    result = bind(listener, (struct sockaddr *)&address, sizeof address);
  int error = errno;
  umask(mask);
  errno = error == EADDRINUSE ? EEXIST : error;
  if (result != 0) return failed(launch, "socket");
  launch->socket_folder = folder;
  launch->socket_made = true;
  if (listen(listener, 128) != 0) return failed(launch, "socket");
  launch->plan.listener = listener;
  return 0;
}

/* By descriptor: a mount may cover the path meanwhile. */
void remove_socket(struct launch *launch) {
  if (launch->socket_made) unlinkat(launch->socket_folder, strrchr(launch->socket, '/') + 1, 0);
}

static int open_folder(const char *path) { return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC); }

int open_folders(struct launch *launch) {
  launch->plan.logs = launch->plan.run = -1;
  launch->null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (launch->null < 0) return failed(launch, "open /dev/null");
  if (launch->logs != NULL) {
    if (mkdir(launch->logs, 0700) != 0 && errno != EEXIST) return failed(launch, "logs");
    launch->plan.logs = open_folder(launch->logs);
    if (launch->plan.logs < 0) return failed(launch, "logs");
    if (launch->root_mode && fchownat(launch->plan.logs, "", launch->uid_base, launch->uid_base, AT_EMPTY_PATH) != 0)
      return failed(launch, "logs");
  }
  if (launch->run != NULL && (launch->plan.run = open_folder(launch->run)) < 0) return failed(launch, "run");
  return 0;
}

/* The range's base owns the user namespace (its inotify and other counters are then its own and not root's) and mounts
   the overlays; the capabilities of the initial namespace stay. */
int become_base(struct launch *launch) {
  if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) != 0) return failed(launch, "secure bits");
  if (setgroups(0, NULL) != 0 || setresgid(-1, launch->uid_base, -1) != 0 || setresuid(-1, launch->uid_base, -1) != 0)
    return failed(launch, "become base id");
  return 0;
}

static int write_file(pid_t child, const char *name, const char *text, int length) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", child, name);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t written = write(fd, text, (size_t)length);
  int error = errno;
  close(fd);
  errno = error;
  return written == length ? 0 : -1;
}

static int write_map(pid_t child, const char *name, uid_t inside, uid_t outside, uid_t count, const struct id_pairs *more) {
  char text[4096];
  int length = snprintf(text, sizeof text, "%u %u %u\n", inside, outside, count);
  for (size_t i = 0; i < more->count; i++)
    length += snprintf(text + length, sizeof text - (size_t)length, "%u %u 1\n", more->list[i].inside, more->list[i].outside);
  return write_file(child, name, text, length);
}

int write_maps(struct launch *launch, pid_t child) {
  if (launch->root_mode) {
    if (write_map(child, "uid_map", 0, launch->uid_base, launch->uid_count, &launch->more_uids) != 0) return failed(launch, "uid_map");
    if (write_map(child, "gid_map", 0, launch->uid_base, launch->uid_count, &launch->more_gids) != 0) return failed(launch, "gid_map");
    return 0;
  }
  if (write_file(child, "setgroups", "deny", 4) != 0) return failed(launch, "setgroups");
  if (write_map(child, "uid_map", launch->map_uid, geteuid(), 1, &launch->more_uids) != 0) return failed(launch, "uid_map");
  if (write_map(child, "gid_map", launch->map_gid, getegid(), 1, &launch->more_gids) != 0) return failed(launch, "gid_map");
  return 0;
}

/* Field 22 of stat; the name in field 2 may hold anything, so counting begins after its last parenthesis. */
int64_t start_time(pid_t pid) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return -1;
  text[length] = '\0';
  char *at = strrchr(text, ')');
  for (int field_number = 2; at != NULL && field_number < 22; field_number++) at = strchr(at + 1, ' ');
  return at == NULL ? -1 : strtoll(at + 1, NULL, 10);
}
