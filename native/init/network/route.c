/* Makes addresses that stand for names answer: needs the network namespace's own capabilities, and no more. */
#include "route.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

/* The first device of every network namespace. */
#define LOOPBACK_DEVICE 1

/* Every address of the range becomes one of loopback's own. A kernel that refuses leaves the sandbox without names, not
   without walls: programs that know the proxy don't need it. */
void route_names(void) {
  struct attribute { struct rtattr head; uint32_t value; };
  struct { struct nlmsghdr header; struct ifaddrmsg body; struct attribute own; } address = {
    .header = {.nlmsg_len = sizeof address, .nlmsg_type = RTM_NEWADDR, .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE},
    .body = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = LOOPBACK_DEVICE},
    .own = {{sizeof address.own, IFA_LOCAL}, htonl(NAMES_NETWORK + 1)},
  };
  struct { struct nlmsghdr header; struct rtmsg body; struct attribute target, device; } route = {
    .header = {.nlmsg_len = sizeof route, .nlmsg_type = RTM_NEWROUTE, .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE},
    .body = {.rtm_family = AF_INET, .rtm_dst_len = NAMES_BITS, .rtm_table = RT_TABLE_LOCAL, .rtm_protocol = RTPROT_STATIC,
             .rtm_scope = RT_SCOPE_HOST, .rtm_type = RTN_LOCAL},
    .target = {{sizeof route.target, RTA_DST}, htonl(NAMES_NETWORK)},
    .device = {{sizeof route.device, RTA_OIF}, LOOPBACK_DEVICE},
  };
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return;
  send(fd, &route, sizeof route, 0);
  /* The resolver's own: without an address besides 127.0.0.1, libc finds no names for who asks for usable ones only. */
  send(fd, &address, sizeof address, 0);
  close(fd);
}
