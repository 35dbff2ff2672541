/* Which paths a change may name. */
#include "apply.h"

#include <limits.h>
#include <string.h>

/* Characters that HFS+ leaves out of a name: U+200C to U+200F, U+202A to U+202E, U+206A to U+206F, U+FEFF. */
static size_t ignored_length(const unsigned char *at) {
  if (at[0] == 0xe2 && at[1] == 0x80 && ((at[2] >= 0x8c && at[2] <= 0x8f) || (at[2] >= 0xaa && at[2] <= 0xae))) return 3;
  if (at[0] == 0xe2 && at[1] == 0x81 && at[2] >= 0xaa && at[2] <= 0xaf) return 3;
  return at[0] == 0xef && at[1] == 0xbb && at[2] == 0xbf ? 3 : 0;
}

/* Whether a name is the repository's folder on some file system: in other case, with characters that HFS+ ignores, as NTFS shortens it
   or lets it end. A backslash ends a name too, as it does there. */
static bool is_repository(const char *name, size_t length) {
  char plain[8] = {0};
  size_t used = 0;
  const unsigned char *bytes = (const unsigned char *)name;
  for (size_t at = 0; at < length; at++) {
    size_t ignored = length - at >= 3 ? ignored_length(bytes + at) : 0;
    if (ignored > 0) {
      at += ignored - 1;
      continue;
    }
    bool ends = bytes[at] == ':' || ((bytes[at] == ' ' || bytes[at] == '.') && used >= 4);
    if (ends) { /* a stream, or dots and spaces up to the end or a stream */
      size_t rest = at;
      while (rest < length && (name[rest] == ' ' || name[rest] == '.')) rest++;
      if (rest == length || name[rest] == ':') break;
    }
    if (used == sizeof plain - 1) return false;
    plain[used++] = name[at];
  }
  return strcasecmp(plain, ".git") == 0 || strcasecmp(plain, "git~1") == 0;
}

bool apply_path_allowed(const char *path) {
  if (*path == '\0' || *path == '/' || strlen(path) >= PATH_MAX) return false;
  for (const char *at = path;;) {
    size_t length = strcspn(at, "/"), piece = strcspn(at, "/\\");
    if (length == 0 || length > NAME_MAX) return false;
    if ((length == 1 && *at == '.') || (length == 2 && at[0] == '.' && at[1] == '.')) return false;
    for (const char *part = at;;) {
      if (is_repository(part, piece)) return false;
      part += piece;
      if (part >= at + length) break;
      part++;
      piece = strcspn(part, "/\\");
    }
    if (at[length] == '\0') return true;
    at += length + 1;
  }
}
