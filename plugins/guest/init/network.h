// Brings up the loopback device, and gives the machine's network device the host's configuration in place of its previous one.
#ifndef NETWORK_H
#define NETWORK_H

#include "failure.h"
#include "identity.h"
#include <stdbool.h>
#include <stdint.h>

// Also while a program uses the device. `network` must be valid.
bool network_apply(const struct network *network, struct failure *failure);
// Another process has applied it.
void network_taken(void);
bool network_loopback(struct failure *failure);
// Brings up the machine's only device, if it has one, before it gets an address: a clone of a template has that behind it.
bool network_prepare(struct failure *failure);
// Parses `a.b.c.d/len`; both results are in network order.
bool network_parse_address(const char *text, uint32_t *address, uint32_t *mask);
bool network_parse_mac(const char *text, uint8_t mac[6]);

#endif
