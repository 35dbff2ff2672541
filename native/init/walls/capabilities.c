/* Capabilities of whatever runs inside: the set containers have by default, and only within the sandbox's user namespace. */
#include "walls.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(capability) (1ull << (capability))

static const uint64_t allowed =
  BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FSETID) | BIT(CAP_FOWNER) | BIT(CAP_MKNOD) | BIT(CAP_NET_RAW) | BIT(CAP_SETGID) |
  BIT(CAP_SETUID) | BIT(CAP_SETFCAP) | BIT(CAP_SETPCAP) | BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_SYS_CHROOT) | BIT(CAP_KILL) | BIT(CAP_AUDIT_WRITE);

/* The bounding set can only be lowered by who still has CAP_SETPCAP: process 1 lowers its own once, and a command that is
   no longer root finds nothing left to lower. */
static int lower_bounding_set(void) {
  for (int capability = 0; capability < 64; capability++) {
    if (allowed & BIT(capability)) continue;
    int present = prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    if (present < 0) return 0; /* past the last one this kernel knows */
    if (present == 1 && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return -1;
  }
  return 0;
}

int drop_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[2];
  if (lower_bounding_set() != 0) return -1;
  if (syscall(SYS_capget, &header, sets) != 0) return -1;
  for (int half = 0; half < 2; half++) {
    sets[half].permitted &= (uint32_t)(allowed >> (32 * half));
    sets[half].effective = sets[half].permitted;
    sets[half].inheritable = 0;
  }
  if (syscall(SYS_capset, &header, sets) != 0) return -1;
  return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}
