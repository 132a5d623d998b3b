// Brings up the loopback device and, when the host gives an address, the machine's network device.
#ifndef NETWORK_H
#define NETWORK_H

#include "workload.h"
#include <stdint.h>

void network_apply(const struct network *network);
// `a.b.c.d/len`; both in network order.
bool network_parse_address(const char *text, uint32_t *address, uint32_t *mask);
bool network_parse_mac(const char *text, uint8_t mac[6]);

#endif
