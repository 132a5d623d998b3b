// Ends connections whose address is gone.
#ifndef SOCKETS_H
#define SOCKETS_H

#include <stdint.h>

// Ends all TCP connections from this IPv4 address (in network order): their programs get an error at once (ECONNABORTED). Listening sockets stay.
// When the kernel cannot do that, programs wait as they would without this.
void sockets_end(uint32_t address);

#endif
