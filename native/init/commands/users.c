/* Users and groups as the sandbox's own /etc knows them. The files are hostile: read in a child, bounded, never waited for. */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACCOUNTS_MAX (4u << 20)

static char *load(const char *path) {
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  struct stat stat;
  char *text = NULL;
  if (fd >= 0 && fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size <= ACCOUNTS_MAX) {
    text = calloc(1, (size_t)stat.st_size + 1);
    if (text != NULL && read_all(fd, text, (size_t)stat.st_size) != 0 && errno != 0) text[0] = '\0';
  }
  if (fd >= 0) close(fd);
  return text;
}

static bool id_number(const char *text, uint32_t *id) {
  if (*text == '\0' || strspn(text, "0123456789") != strlen(text) || strlen(text) > 10) return false;
  unsigned long long value = strtoull(text, NULL, 10);
  if (value > UINT32_MAX - 1) return false; /* the largest means "leave it" to the kernel */
  *id = (uint32_t)value;
  return true;
}

/* Cuts the next line into at most `most` parts at the colons; NULL-padded. Returns what follows, NULL at the end. */
static char *next_line(char *text, char **parts, size_t most) {
  if (text == NULL || *text == '\0') return NULL;
  char *end = strchrnul(text, '\n');
  char *after = *end == '\0' ? end : end + 1;
  *end = '\0';
  for (size_t at = 0; at < most; at++) parts[at] = text == NULL ? NULL : strsep(&text, ":");
  return after;
}

/* Keeps a part of an account's line if it fits; a path must be absolute. */
static void keep(char *into, size_t size, const char *part, bool path) {
  into[0] = '\0';
  if (part != NULL && strlen(part) < size && (!path || part[0] == '/')) strcpy(into, part);
}

static bool find_user(const char *wanted, struct identity *identity) {
  uint32_t number, uid, gid;
  bool numeric = id_number(wanted, &number);
  char *text = load("/etc/passwd"), *parts[7];
  bool found = false;
  for (char *at = next_line(text, parts, 7); at != NULL && !found; at = next_line(at, parts, 7)) {
    if (parts[3] == NULL || !id_number(parts[2], &uid) || !id_number(parts[3], &gid)) continue;
    if (numeric ? uid != number : strcmp(parts[0], wanted) != 0) continue;
    keep(identity->name, sizeof identity->name, parts[0], false);
    keep(identity->home, sizeof identity->home, parts[5], true);
    keep(identity->shell, sizeof identity->shell, parts[6], true);
    identity->uid = uid;
    identity->gid = gid;
    found = true;
  }
  free(text);
  if (found || !numeric) return found;
  identity->uid = identity->gid = number; /* a user without an account has a group of its own, never root's */
  return true;
}

static bool find_group(const char *wanted, gid_t *result) {
  uint32_t gid;
  if (id_number(wanted, &gid)) {
    *result = gid;
    return true;
  }
  char *text = load("/etc/group"), *parts[3];
  bool found = false;
  for (char *at = next_line(text, parts, 3); at != NULL && !found; at = next_line(at, parts, 3)) {
    if (parts[2] == NULL || strcmp(parts[0], wanted) != 0 || !id_number(parts[2], &gid)) continue;
    *result = gid;
    found = true;
  }
  free(text);
  return found;
}

static void find_memberships(const char *name, struct identity *identity) {
  const size_t most = sizeof identity->groups / sizeof identity->groups[0];
  uint32_t gid;
  char *text = load("/etc/group"), *parts[4];
  for (char *at = next_line(text, parts, 4); at != NULL; at = next_line(at, parts, 4)) {
    if (parts[3] == NULL || !id_number(parts[2], &gid)) continue;
    for (char *member; (member = strsep(&parts[3], ",")) != NULL;) {
      if (strcmp(member, name) == 0 && identity->group_count < most) identity->groups[identity->group_count++] = gid;
    }
  }
  free(text);
}

const char *resolve_user(const char *text, bool single_user, struct identity *identity) {
  *identity = (struct identity){.uid = getuid(), .gid = getgid()};
  if (text == NULL) return NULL;
  char user[66];
  if (*text == '\0' || strlen(text) >= sizeof user) return "bad-request";
  strcpy(user, text);
  char *group = strchr(user, ':');
  if (group != NULL) *group++ = '\0';
  if (*user == '\0' || (group != NULL && *group == '\0')) return "bad-request";
  if (!find_user(user, identity)) return "no-user";
  if (group != NULL && !find_group(group, &identity->gid)) return "no-user";
  if (single_user) return identity->uid == getuid() && (group == NULL || identity->gid == getgid()) ? NULL : "no-user";
  if (group == NULL && identity->name[0] != '\0') find_memberships(identity->name, identity);
  return NULL;
}
