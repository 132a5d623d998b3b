// Brings up the loopback device, and gives the machine's network device the host's configuration in place of its previous one.
#include "network.h"
#include "files.h"
#include "log.h"
#include "protocol.h"
#include "sockets.h"
#include "spawn.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

// How many old addresses or routes are removed at most; the largest number of a device that is looked at; points of the right device.
enum { OLD_MAX = 64, NUMBER_MAX = 64, SURE = 4 };

// The only device, which is up and silent, and has no address: no program has run yet. Empty: unknown.
static char ready[IFNAMSIZ];

bool network_parse_address(const char *text, uint32_t *address, uint32_t *mask) {
  const char *slash = strchr(text, '/');
  char part[INET_ADDRSTRLEN];
  size_t length = slash == NULL ? strlen(text) : (size_t)(slash - text);
  if (length >= sizeof part) return false;
  memcpy(part, text, length);
  part[length] = 0;
  struct in_addr parsed;
  if (inet_pton(AF_INET, part, &parsed) != 1) return false;
  char *end = NULL;
  unsigned long bits = slash == NULL ? 32 : strtoul(slash + 1, &end, 10);
  if (slash != NULL && (slash[1] < '0' || slash[1] > '9' || *end != 0 || bits > 32)) return false;
  *address = parsed.s_addr;
  *mask = bits == 0 ? 0 : htonl(~0U << (32 - bits));
  return true;
}

bool network_parse_mac(const char *text, uint8_t mac[6]) {
  unsigned int parts[6];
  int used = 0;
  if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &parts[0], &parts[1], &parts[2], &parts[3], &parts[4], &parts[5], &used) != 6) {
    return false;
  }
  for (int i = 0; i < 6; i++) mac[i] = (uint8_t)parts[i];
  return text[used] == 0;
}

// A socket for requests, and the first failure.
struct control {
  int fd;
  const char *name; // the device
  bool failed;
  struct failure *failure;
};

static bool change(struct control *control, unsigned long request, void *argument, const char *what) {
  if (ioctl(control->fd, request, argument) == 0) return true;
  if (!control->failed) fail(control->failure, errno, EXIT_BOOT_FAILED, "network: %s: %s", what, strerror(errno));
  control->failed = true;
  return false;
}

static struct ifreq request_for(const char *name) {
  struct ifreq request = { 0 };
  snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
  return request;
}

static void set_flags(struct control *control, short set, short clear) {
  struct ifreq request = request_for(control->name);
  if (!change(control, SIOCGIFFLAGS, &request, control->name)) return;
  request.ifr_flags = (short)((request.ifr_flags | set) & ~clear);
  change(control, SIOCSIFFLAGS, &request, control->name);
}

static bool is_virtio(int control, const char *name) {
  struct ethtool_drvinfo driver = { .cmd = ETHTOOL_GDRVINFO };
  struct ifreq request = request_for(name);
  request.ifr_data = (char *)&driver;
  return ioctl(control, SIOCETHTOOL, &request) == 0 && strncmp(driver.driver, "virtio_net", sizeof driver.driver) == 0;
}

// How likely this is the machine's device: Ethernet, of the kind that VMMs make (the program may have made bridges and others), and
// above all with the requested hardware address.
static int likelihood(int control, const char *name, const uint8_t *mac) {
  struct ifreq request = request_for(name);
  if (ioctl(control, SIOCGIFHWADDR, &request) < 0 || request.ifr_hwaddr.sa_family != ARPHRD_ETHER) return 0;
  int points = is_virtio(control, name) ? 2 : 1;
  return mac != NULL && memcmp(request.ifr_hwaddr.sa_data, mac, 6) == 0 ? points + 2 : points;
}

// The first of the most likely devices; the number of candidates. They are asked for by number: a list would come from a socket of its own, which costs a clone
// as much as all the rest. The machine's device has one of the first numbers, however many the program has made.
static int find_device(int control, const char *mac_text, char name[IFNAMSIZ]) {
  uint8_t mac[6];
  bool by_mac = network_parse_mac(mac_text, mac);
  int best = 0, count = 0;
  for (int index = 1; index <= NUMBER_MAX && best < SURE; index++) {
    struct ifreq request = { .ifr_ifindex = index };
    if (ioctl(control, SIOCGIFNAME, &request) < 0) continue;
    int points = likelihood(control, request.ifr_name, by_mac ? mac : NULL);
    if (points > 0) count++;
    if (points <= best) continue;
    best = points;
    snprintf(name, IFNAMSIZ, "%s", request.ifr_name);
  }
  return count;
}

static bool has_mac(struct control *control, const char *text) {
  uint8_t mac[6];
  struct ifreq request = request_for(control->name);
  return text[0] == 0 || (network_parse_mac(text, mac) && ioctl(control->fd, SIOCGIFHWADDR, &request) == 0 &&
                          memcmp(request.ifr_hwaddr.sa_data, mac, sizeof mac) == 0);
}

static void set_mac(struct control *control, const char *text) {
  struct ifreq request = request_for(control->name);
  uint8_t mac[6];
  if (!network_parse_mac(text, mac)) return;
  request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  memcpy(request.ifr_hwaddr.sa_data, mac, sizeof mac);
  // Virtio's device takes another address while it is up; others must be down.
  if (ioctl(control->fd, SIOCSIFHWADDR, &request) == 0) return;
  set_flags(control, 0, IFF_UP);
  change(control, SIOCSIFHWADDR, &request, "hardware address");
}

static struct sockaddr address_of(uint32_t address) {
  struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = address };
  struct sockaddr out;
  memcpy(&out, &in, sizeof out);
  return out;
}

static uint32_t value_of(const struct sockaddr *address) {
  struct sockaddr_in in;
  memcpy(&in, address, sizeof in);
  return in.sin_addr.s_addr;
}

static bool has_address(struct control *control, const char *text) {
  uint32_t address, mask;
  struct ifreq request = request_for(control->name);
  if (text[0] == 0) return true;
  if (!network_parse_address(text, &address, &mask) || ioctl(control->fd, SIOCGIFADDR, &request) < 0) return false;
  if (value_of(&request.ifr_addr) != address || ioctl(control->fd, SIOCGIFNETMASK, &request) < 0) return false;
  return value_of(&request.ifr_netmask) == mask;
}

// The program may have added addresses of its own; they belong to the machine's previous network, as connections from them do.
static void drop_addresses(struct control *control) {
  for (int i = 0; i < OLD_MAX; i++) {
    struct ifreq request = request_for(control->name);
    if (ioctl(control->fd, SIOCGIFADDR, &request) < 0) return;
    uint32_t old = value_of(&request.ifr_addr);
    request.ifr_addr = address_of(0);
    if (!change(control, SIOCSIFADDR, &request, "old address")) return;
    sockets_end(old);
  }
}

static void set_address(struct control *control, const char *text) {
  uint32_t address, mask;
  if (!network_parse_address(text, &address, &mask)) return;
  struct ifreq request = request_for(control->name);
  request.ifr_addr = address_of(address);
  if (!change(control, SIOCSIFADDR, &request, "address")) return;
  request.ifr_netmask = address_of(mask);
  change(control, SIOCSIFNETMASK, &request, "mask");
}

static void drop_default_routes(struct control *control) {
  struct rtentry old = { .rt_dst = address_of(0), .rt_genmask = address_of(0), .rt_flags = RTF_UP };
  for (int i = 0; i < OLD_MAX && ioctl(control->fd, SIOCDELRT, &old) == 0; i++);
}

static void set_gateway(struct control *control, const char *text) {
  uint32_t gateway, mask;
  if (!network_parse_address(text, &gateway, &mask)) return;
  char device[IFNAMSIZ];
  snprintf(device, sizeof device, "%s", control->name);
  struct rtentry route = { .rt_dst = address_of(0), .rt_genmask = address_of(0), .rt_gateway = address_of(gateway), .rt_dev = device, .rt_flags = RTF_UP | RTF_GATEWAY };
  // A machine that goes on keeps its route, together with other routes of its program.
  if (ioctl(control->fd, SIOCADDRT, &route) < 0 && errno == EEXIST) return;
  drop_default_routes(control);
  change(control, SIOCADDRT, &route, "default route");
}

// The network has only IPv4, and a new device would at once search for routers and neighbours by IPv6. A kernel without IPv6 has
// no such file.
static void silence_ipv6(const char *name) {
  char path[64 + IFNAMSIZ];
  snprintf(path, sizeof path, "sys/net/ipv6/conf/%s/disable_ipv6", name);
  int error = proc_folder < 0 ? 0 : file_write(proc_folder, path, "1");
  if (error != 0 && error != ENOENT) log_problem("IPv6 of %s: %s", name, strerror(error));
}

// Brought down first when anything differs: going down drops its routes, and the IPv6 addresses that were made from the old hardware address. A device that
// already has this configuration is left alone, with its connections.
static void configure(struct control *control, const struct network *network, bool fresh) {
  if (!fresh) silence_ipv6(control->name);
  if (!has_mac(control, network->mac) || !has_address(control, network->address)) {
    if (!fresh) set_flags(control, 0, IFF_UP);
    if (!has_mac(control, network->mac)) set_mac(control, network->mac);
    if (network->address[0] != 0) {
      drop_addresses(control);
      set_address(control, network->address);
    }
  }
  set_flags(control, IFF_UP, 0);
  if (!fresh) {
    // A change of this flag makes the kernel forget the device's neighbours, of both families: another host has others.
    set_flags(control, IFF_NOARP, 0);
    set_flags(control, 0, IFF_NOARP);
  }
  if (network->gateway[0] != 0) set_gateway(control, network->gateway);
}

static bool open_control(struct control *control, struct failure *failure) {
  control->failure = failure;
  control->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  return control->fd >= 0 || fail(failure, errno, EXIT_BOOT_FAILED, "network: %s", strerror(errno));
}

void network_taken(void) {
  ready[0] = 0;
}

bool network_apply(const struct network *network, struct failure *failure) {
  if (!network->given) return true;
  char name[IFNAMSIZ];
  bool fresh = ready[0] != 0;
  struct control control = { .name = fresh ? ready : name };
  if (!open_control(&control, failure)) return false;
  if (fresh || find_device(control.fd, network->mac, name) > 0) configure(&control, network, fresh);
  else control.failed = !fail(failure, ENODEV, EXIT_BOOT_FAILED, "network: there is no network device");
  network_taken();
  close(control.fd);
  return !control.failed;
}

bool network_prepare(struct failure *failure) {
  char name[IFNAMSIZ];
  struct control control = { .name = name };
  if (!open_control(&control, failure)) return false;
  if (find_device(control.fd, "", name) == 1) {
    silence_ipv6(name);
    set_flags(&control, IFF_UP, 0);
    if (!control.failed) memcpy(ready, name, IFNAMSIZ);
  }
  close(control.fd);
  return !control.failed;
}

bool network_loopback(struct failure *failure) {
  struct control control = { .name = "lo" };
  if (!open_control(&control, failure)) return false;
  set_flags(&control, IFF_UP, 0);
  close(control.fd);
  return !control.failed;
}
