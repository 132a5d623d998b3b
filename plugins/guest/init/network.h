// Brings up the loopback device, and gives the machine's network device what the host says, in place of what it had.
#ifndef NETWORK_H
#define NETWORK_H

#include "failure.h"
#include "identity.h"
#include <stdbool.h>
#include <stdint.h>

// Also while a program uses the device. Nothing of `network` is malformed.
bool network_apply(const struct network *network, struct failure *failure);
bool network_loopback(struct failure *failure);
// `a.b.c.d/len`; both in network order.
bool network_parse_address(const char *text, uint32_t *address, uint32_t *mask);
bool network_parse_mac(const char *text, uint8_t mac[6]);

#endif
