// The machine's network device, in a network namespace of the test's own: a virtual pair in the place of virtio's.
#include "check.h"
#include "aside.h"
#include "network.h"
#include "spawn.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
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

static bool apply_aside(const char *address, struct failure *failure) {
  struct network network = network_of("02:00:00:00:00:02", address, "10.3.0.1");
  struct aside aside;
  bool other = aside_begin(&aside, &network), good = aside_end(&aside, failure);
  while (waitpid(-1, NULL, 0) > 0);
  return other && good;
}

// A connection from an address to itself; the end that called. What answers stays open.
static int connection(const char *address, int family) {
  struct sockaddr_in in = { .sin_family = AF_INET };
  struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
  char mapped[INET6_ADDRSTRLEN];
  snprintf(mapped, sizeof mapped, "::ffff:%s", address);
  inet_pton(AF_INET, address, &in.sin_addr);
  inet_pton(AF_INET6, mapped, &in6.sin6_addr);
  struct sockaddr *place = family == AF_INET ? (struct sockaddr *)&in : (struct sockaddr *)&in6;
  socklen_t length = family == AF_INET ? sizeof in : sizeof in6;
  int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), caller = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (bind(listener, place, length) < 0 || listen(listener, 1) < 0 || getsockname(listener, place, &length) < 0) return -1;
  if (connect(caller, place, length) < 0 && errno != EINPROGRESS) return -1;
  int answerer = accept(listener, NULL, NULL);
  close(listener);
  return answerer < 0 ? -1 : caller;
}

static int error_of(int connected) {
  char byte;
  return recv(connected, &byte, 1, MSG_DONTWAIT) < 0 ? errno : 0;
}

// Somebody in another network namespace, for the other end of a pair.
static pid_t neighbour(void) {
  int ends[2];
  char byte;
  if (pipe(ends) < 0) abort();
  pid_t pid = fork();
  if (pid == 0) {
    if (unshare(CLONE_NEWNET) == 0 && write(ends[1], "r", 1) == 1) pause();
    _exit(1);
  }
  close(ends[1]);
  if (read(ends[0], &byte, 1) != 1) abort();
  close(ends[0]);
  return pid;
}

// A machine's only device, as the boot finds it.
static void prepared(void) {
  struct failure failure = { 0 };
  char command[160];
  check(network_prepare(&failure), "no device to prepare is no failure");
  pid_t other = neighbour();
  snprintf(command, sizeof command, "ip link add eth0 index 9 address 02:00:00:00:00:99 type veth peer name other netns %d 2>&1 && echo made", (int)other);
  if (!has(command, "made")) {
    check(true, "skipped: this kernel makes no devices of its own");
    kill(other, SIGKILL);
    return;
  }
  check(network_prepare(&failure) && has("ip link show eth0", ",UP") && !has("ip addr show eth0", "inet"), "the only device is brought up without any address");
  check(apply("02:00:00:00:00:01", "10.1.0.5/24", "10.1.0.1", &failure) && has("ip addr show eth0", "02:00:00:00:00:01") && has("ip -4 addr show eth0", "10.1.0.5/24 brd 10.1.0.255") &&
        has("ip route", "default via 10.1.0.1 dev eth0") && has("ip link show eth0", ",UP"), "and is given what the host says");
  shell("ip route add 192.0.2.0/24 dev eth0");
  check(apply("02:00:00:00:00:02", "10.1.0.6/24", "10.1.0.1", &failure) && !has("ip route", "192.0.2.0") && has("ip -4 addr show eth0", "10.1.0.6/24"), "another network then leaves nothing of the first");
  shell("ip link delete eth0");
  kill(other, SIGKILL);
  waitpid(other, NULL, 0);
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
  prepared();
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
  int old = connection("10.1.0.5", AF_INET), mapped = connection("10.1.0.5", AF_INET6), local = connection("127.0.0.1", AF_INET);
  check(error_of(old) == EAGAIN && error_of(mapped) == EAGAIN && error_of(local) == EAGAIN, "connections are there");
  check(apply("02:00:00:00:00:01", "10.1.0.5/24", "10.1.0.254", &failure) && error_of(old) == EAGAIN, "the same once more leaves them alone");
  shell("ip addr add 172.16.0.1/12 dev eth0");
  check(apply("02:00:00:00:00:02", "10.2.0.5/16", "10.2.0.1", &failure) && !has("ip addr show eth0", "172.16") && !has("ip addr show eth0", "10.1.0") && !has("ip route", "10.1.0") &&
        has("ip -4 addr show eth0", "10.2.0.5/16 brd 10.2.255.255") && has("ip route", "default via 10.2.0.1"), "another network leaves nothing of the first");
  check(error_of(old) == ECONNABORTED && error_of(mapped) == ECONNABORTED, "nor its connections, whose programs hear of it");
  check(error_of(local) == EAGAIN, "but those within the machine");
  check(!apply("", "10.2.0.5/16", "10.9.0.1", &failure) && failure.error == ENETUNREACH && strstr(failure.message, "default route") != NULL, "a gateway that is not in the network is an error");
  aside_prepare(network_apply);
  check(apply_aside("10.3.0.5/16", &failure) && has("ip -4 addr show eth0", "10.3.0.5/16") && has("ip route", "default via 10.3.0.1"), "a process that waits for it does the same aside, and ends");
  check(!apply_aside("10.4.0.5/16", &failure) && failure.error == ENETUNREACH && strstr(failure.message, "default route") != NULL, "without one that waits one is started, and what went wrong is told");
  aside_prepare(network_apply);
  aside_forget();
  check(apply_aside("10.3.0.5/16", &failure), "nor is the one that waits needed");
  shell("ip link set eth0 mtu 1400");
  check(apply("02:00:00:00:00:02", "", "", &failure) && has("ip link show eth0", "mtu 1400") && has("ip -4 addr show eth0", "10.3.0.5/16"), "what is not said stays");
  return checks_end();
}
