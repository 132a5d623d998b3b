// Ends connections whose address is gone.
#ifndef SOCKETS_H
#define SOCKETS_H

#include <stdint.h>

// All TCP connections from this IPv4 address (in network order): their programs hear of it at once (ECONNABORTED). What listens goes on.
// Without a kernel that can, they wait as they would anyway.
void sockets_end(uint32_t address);

#endif
