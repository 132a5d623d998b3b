// A TCP connection that is being made, to this guest's loopback or one of its addresses.
#ifndef DIAL_H
#define DIAL_H

#include <stdint.h>

// Begins one and waits for nothing. The descriptor, or -1 with errno; EINVAL for what is no IPv4 address.
int dial(const char *address, uint16_t port);
// 0 once it is there, EINPROGRESS as long as nobody knows, else why it came to nothing.
int dial_state(int fd);

#endif
