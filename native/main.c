#include "host/host.h"
#include "launch/launch.h"
#include "mover/mover.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    printf("%d\n", PROTOCOL_VERSION);
    return 0;
  }
  if (argc == 2 && strcmp(argv[1], "host") == 0) return host_main();
  if (argc == 2 && strcmp(argv[1], "mover") == 0) return mover_main();
  if (argc == 2 && strcmp(argv[1], "probe") == 0) return probe_main();
  fprintf(stderr, "cell: started by viv, not by hand. Usage: cell host | cell mover | cell probe | cell --version\n");
  return 2;
}
