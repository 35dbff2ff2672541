/* Exchanges two names again and again until it is killed: a race against a program that looks a path up twice. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>

int main(int count, char **names) {
  if (count < 3 || puts("begun") == EOF || fflush(stdout) != 0) return 2;
  while (renameat2(AT_FDCWD, names[1], AT_FDCWD, names[2], RENAME_EXCHANGE) == 0) continue;
  perror("exchange");
  return 1;
}
