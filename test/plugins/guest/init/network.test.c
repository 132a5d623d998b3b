// The machine's network device, in a network namespace of the test's own: a virtual pair in the place of virtio's.
#include "check.h"
#include "network.h"
#include "spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char said[8192];

static const char *shell(const char *command) {
  FILE *pipe = popen(command, "r");
  said[0] = 0;
  if (pipe == NULL) return said;
  said[fread(said, 1, sizeof said - 1, pipe)] = 0;
  pclose(pipe);
  return said;
}

static bool has(const char *command, const char *text) {
  return strstr(shell(command), text) != NULL;
}

static struct network network_of(const char *mac, const char *address, const char *gateway) {
  struct network network = { .given = true };
  strcpy(network.mac, mac);
  strcpy(network.address, address);
  strcpy(network.gateway, gateway);
  return network;
}

static bool apply(const char *mac, const char *address, const char *gateway, struct failure *failure) {
  struct network network = network_of(mac, address, gateway);
  return network_apply(&network, failure);
}

int main(void) {
  struct failure failure = { 0 };
  if (unshare(CLONE_NEWNET) < 0) {
    check(errno == EPERM, "skipped: a network namespace needs root");
    return checks_end();
  }
  proc_folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  check(network_loopback(&failure) && has("ip link show lo", "LOOPBACK,UP"), "the loopback device is brought up");
  check(!apply("02:00:00:00:00:01", "10.1.0.5/24", "10.1.0.1", &failure) && failure.error == ENODEV && strstr(failure.message, "there is no network device") != NULL, "a device that is absent is said to be");
  struct network none = { 0 };
  check(network_apply(&none, &failure), "no network needs no device");
  if (!has("ip link add eth0 index 10 address 02:00:00:00:00:99 type veth peer name other index 11 && ip link set other up && echo made", "made")) {
    check(true, "skipped: this kernel makes no devices of its own");
    return checks_end();
  }
  check(apply("02:00:00:00:00:01", "10.1.0.5/24", "10.1.0.1", &failure), "a device is given what the host says");
  check(has("ip link show eth0", "02:00:00:00:00:01") && has("ip link show eth0", "mtu 1500"), "its hardware address, whatever it had");
  check(has("ip -4 addr show eth0", "10.1.0.5/24 brd 10.1.0.255"), "its address, with the prefix");
  check(has("ip route", "default via 10.1.0.1 dev eth0") && has("ip route", "10.1.0.0/24 dev eth0"), "its routes");
  check(has("cat /proc/sys/net/ipv6/conf/eth0/disable_ipv6 2>&1 || echo 1", "1") && !has("ip -6 addr show eth0", "fe80"), "it does not speak IPv6");
  check(has("cat /proc/sys/net/ipv6/conf/lo/disable_ipv6 2>&1 || echo 0", "0"), "the loopback device may");
  shell("ip neigh add 10.1.0.9 lladdr 02:00:00:00:00:09 dev eth0 nud reachable; ip route add default via 10.1.0.77 metric 50; ip route add 192.0.2.0/24 via 10.1.0.9");
  check(apply("02:00:00:00:00:01", "10.1.0.5/24", "10.1.0.1", &failure) && has("ip route", "192.0.2.0/24 via 10.1.0.9") && has("ip route", "via 10.1.0.77") && !has("ip neigh", "00:09"),
        "the same once more leaves routes alone, and forgets neighbours");
  check(apply("02:00:00:00:00:01", "10.1.0.5/24", "10.1.0.254", &failure) && has("ip route", "default via 10.1.0.254 dev eth0") && !has("ip route", "default via 10.1.0.1 "), "another gateway takes the place of the first");
  shell("ip addr add 172.16.0.1/12 dev eth0");
  check(apply("02:00:00:00:00:02", "10.2.0.5/16", "10.2.0.1", &failure) && !has("ip addr show eth0", "172.16") && !has("ip addr show eth0", "10.1.0") && !has("ip route", "10.1.0") &&
        has("ip -4 addr show eth0", "10.2.0.5/16 brd 10.2.255.255") && has("ip route", "default via 10.2.0.1"), "another network leaves nothing of the first");
  check(!apply("", "10.2.0.5/16", "10.9.0.1", &failure) && failure.error == ENETUNREACH && strstr(failure.message, "default route") != NULL, "a gateway that is not in the network is an error");
  shell("ip link set eth0 mtu 1400");
  check(apply("02:00:00:00:00:02", "", "", &failure) && has("ip link show eth0", "mtu 1400") && has("ip -4 addr show eth0", "10.2.0.5/16"), "what is not said stays");
  return checks_end();
}
