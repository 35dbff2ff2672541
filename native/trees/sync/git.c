/* Which folders hold the settings of a git repository: `.git`, and below it those of submodules and worktrees. */
#include "sync.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_head(const struct sync *sync, const char *path, size_t length) {
  char *head = malloc(length + sizeof "/HEAD");
  if (head == NULL) abort();
  memcpy(head, path, length);
  strcpy(head + length, "/HEAD");
  struct stat status;
  bool found = fstatat(sync->source, head, &status, AT_SYMLINK_NOFOLLOW) == 0;
  free(head);
  return found;
}

/* Walks the components: a branch may be called `hooks`, so the name of a folder alone does not tell. */
bool is_git_folder(const struct sync *sync, const char *path) {
  enum { OUTSIDE, GIT, CONTAINER, PLAIN } state = OUTSIDE;
  for (const char *at = path; *at != '\0';) {
    size_t length = strcspn(at, "/");
    bool modules = length == 7 && memcmp(at, "modules", 7) == 0, worktrees = length == 9 && memcmp(at, "worktrees", 9) == 0;
    if (length == 4 && memcmp(at, ".git", 4) == 0) state = GIT;
    else if (state == GIT) state = modules || worktrees ? CONTAINER : PLAIN;
    else if (state == CONTAINER && has_head(sync, path, (size_t)(at - path) + length)) state = GIT;
    at += length;
    if (*at == '/') at++;
  }
  return state == GIT;
}

bool is_git_config(const char *name) {
  return strcmp(name, "config") == 0 || strcmp(name, "config.worktree") == 0 || strcmp(name, "credentials") == 0;
}

bool is_ignore_file(const char *path) {
  static const char exclude[] = ".git/info/exclude";
  size_t length = strlen(path);
  const char *name = strrchr(path, '/');
  name = name == NULL ? path : name + 1;
  if (strcmp(name, ".gitignore") == 0) return true;
  if (length < sizeof exclude - 1 || strcmp(path + length - (sizeof exclude - 1), exclude) != 0) return false;
  return length == sizeof exclude - 1 || path[length - sizeof exclude] == '/';
}
