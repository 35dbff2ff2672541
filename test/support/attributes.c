/* attributes FILE: prints the names of its extended attributes. attributes FILE NAME=VALUE...: sets them; "cap" sets a file capability. */
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

/* cap_chown, permitted, version 2 */
static const unsigned char capability[20] = {1, 0, 0, 2, 1};

int main(int count, char **arguments) {
  char names[4096];
  for (int index = 2; index < count; index++) {
    char *value = strchr(arguments[index], '=');
    int failed;
    if (value == NULL) failed = setxattr(arguments[1], "security.capability", capability, sizeof capability, 0);
    else {
      *value++ = '\0';
      failed = setxattr(arguments[1], arguments[index], value, strlen(value), 0);
    }
    if (failed) perror(arguments[index]);
    if (failed) return 1;
  }
  ssize_t length = listxattr(arguments[1], names, sizeof names);
  for (ssize_t at = 0; at < length; at += (ssize_t)strlen(names + at) + 1) printf("%s\n", names + at);
  return length < 0;
}
