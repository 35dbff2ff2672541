/* The state folder and the socket in it, by the rules of src/base/config/paths.ts. What is unusual is left to Node. */
#include "front.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* With a longer path, the socket has another place. */
#define SOCKET_PATH_MAX 100

/* Absolute, with nothing in it that Node would take out. */
static bool is_plain(const char *path) {
  if (path[0] != '/' || path[1] == '\0') return false;
  for (const char *slash = path; slash != NULL; slash = strchr(slash + 1, '/')) {
    const char *part = slash + 1;
    size_t length = strcspn(part, "/");
    if (length == 0 || (length == 1 && part[0] == '.') || (length == 2 && memcmp(part, "..", 2) == 0)) return false;
  }
  return true;
}

static const char *set(const char *name) {
  const char *value = getenv(name);
  return value == NULL || *value == '\0' ? NULL : value;
}

static bool state_folder(char *folder, size_t size) {
  const char *given = set("VIV_HOME");
  int length;
  if (given != NULL) length = snprintf(folder, size, "%s", given);
  else if (getuid() == 0) length = snprintf(folder, size, "/var/lib/vivarium");
  else {
    const char *state = set("XDG_STATE_HOME"), *home = set("HOME");
    if (state != NULL && state[0] == '/') length = snprintf(folder, size, "%s/vivarium", state);
    else if (home != NULL) length = snprintf(folder, size, "%s/.local/state/vivarium", home);
    else return false;
  }
  return length > 0 && (size_t)length < size && is_plain(folder);
}

bool find_places(struct places *places) {
  char folder[PATH_MAX], parent[PATH_MAX];
  if (!state_folder(folder, sizeof folder)) return false;
  /* Links on the way are followed, one at the end is not. */
  char *name = strrchr(folder, '/');
  *name++ = '\0';
  if (realpath(folder[0] == '\0' ? "/" : folder, parent) == NULL) return false;
  if (strcmp(parent, "/") == 0) parent[0] = '\0';
  char path[sizeof places->socket.sun_path];
  int length = snprintf(path, sizeof path, "%s/%s/viv.sock", parent, name);
  if (length < 0 || length > SOCKET_PATH_MAX) return false;
  *places = (struct places){.socket.sun_family = AF_UNIX};
  memcpy(places->socket.sun_path, path, (size_t)length);
  int token = snprintf(places->approver, sizeof places->approver, "%s/%s/approver-token", parent, name);
  return token > 0 && (size_t)token < sizeof places->approver;
}
