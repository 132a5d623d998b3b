// Brings up the loopback device and, when the host gives an address, the machine's network device.
#include "network.h"
#include "log.h"
#include <arpa/inet.h>
#include <errno.h>
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

static bool change(int control, unsigned long request, void *argument, const char *what) {
  if (ioctl(control, request, argument) == 0) return true;
  log_problem("network: %s: %s", what, strerror(errno));
  return false;
}

static struct ifreq request_for(const char *name) {
  struct ifreq request = { 0 };
  snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
  return request;
}

static void set_flags(int control, const char *name, bool up) {
  struct ifreq request = request_for(name);
  if (!change(control, SIOCGIFFLAGS, &request, name)) return;
  if (up) request.ifr_flags |= IFF_UP;
  else request.ifr_flags &= (short)~IFF_UP;
  change(control, SIOCSIFFLAGS, &request, name);
}

// The device that has this hardware address already, else the first Ethernet device.
static bool find_device(int control, const char *mac_text, char name[IFNAMSIZ]) {
  uint8_t mac[6];
  bool by_mac = mac_text != NULL && network_parse_mac(mac_text, mac), found = false;
  struct if_nameindex *devices = if_nameindex();
  for (struct if_nameindex *device = devices; device != NULL && device->if_index != 0; device++) {
    struct ifreq request = request_for(device->if_name);
    if (ioctl(control, SIOCGIFHWADDR, &request) < 0 || request.ifr_hwaddr.sa_family != ARPHRD_ETHER) continue;
    bool same = by_mac && memcmp(request.ifr_hwaddr.sa_data, mac, sizeof mac) == 0;
    if (!found || same) snprintf(name, IFNAMSIZ, "%s", device->if_name);
    found = true;
    if (same || !by_mac) break;
  }
  if (devices != NULL) if_freenameindex(devices);
  return found;
}

// A device keeps its address while it is up, so it goes down first when that must change.
static void set_mac(int control, const char *name, const char *mac_text) {
  uint8_t mac[6];
  struct ifreq request = request_for(name);
  if (mac_text == NULL || !network_parse_mac(mac_text, mac) || ioctl(control, SIOCGIFHWADDR, &request) < 0) return;
  if (memcmp(request.ifr_hwaddr.sa_data, mac, sizeof mac) == 0) return;
  set_flags(control, name, false);
  memcpy(request.ifr_hwaddr.sa_data, mac, sizeof mac);
  change(control, SIOCSIFHWADDR, &request, "hardware address");
}

static struct sockaddr address_of(uint32_t address) {
  struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = address };
  struct sockaddr out;
  memcpy(&out, &in, sizeof out);
  return out;
}

static void set_address(int control, const char *name, const char *text) {
  uint32_t address, mask;
  if (!network_parse_address(text, &address, &mask)) {
    log_problem("network: the address \"%.64s\" is malformed", text);
    return;
  }
  struct ifreq request = request_for(name);
  request.ifr_addr = address_of(address);
  if (!change(control, SIOCSIFADDR, &request, "address")) return;
  request.ifr_netmask = address_of(mask);
  change(control, SIOCSIFNETMASK, &request, "mask");
}

static void set_gateway(int control, const char *text) {
  uint32_t gateway, mask;
  if (!network_parse_address(text, &gateway, &mask)) return;
  struct rtentry route = { .rt_flags = RTF_UP | RTF_GATEWAY };
  route.rt_dst = address_of(0);
  route.rt_genmask = address_of(0);
  route.rt_gateway = address_of(gateway);
  ioctl(control, SIOCDELRT, &(struct rtentry){ .rt_dst = address_of(0), .rt_genmask = address_of(0), .rt_flags = RTF_UP });
  change(control, SIOCADDRT, &route, "default route");
}

void network_apply(const struct network *network) {
  int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control < 0) return;
  char name[IFNAMSIZ];
  set_flags(control, "lo", true);
  if (network->given && !find_device(control, network->mac, name)) log_problem("network: there is no network device");
  else if (network->given) {
    set_mac(control, name, network->mac);
    if (network->address != NULL) set_address(control, name, network->address);
    set_flags(control, name, true);
    if (network->gateway != NULL) set_gateway(control, network->gateway);
  }
  close(control);
}
