// Connects over TCP to this guest's loopback or one of its addresses.
#ifndef DIAL_H
#define DIAL_H

#include <stdint.h>

// Begins to connect, without waiting. The descriptor, or -1 with errno; EINVAL for an invalid IPv4 address.
int dial(const char *address, uint16_t port);
// 0 once connected, EINPROGRESS while that is unknown, else the errno of the failure.
int dial_state(int fd);

#endif
