// How much the other end of a stream has acknowledged as written to its file: after each piece it sends the number of all bytes of this connection so far, 8 bytes, little-endian.
// Bytes are kept until they are acknowledged, since a connection that breaks, as at a restore, could still lose them.
#ifndef ACKNOWLEDGED_H
#define ACKNOWLEDGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct acknowledged {
  uint64_t total;
  uint8_t bytes[8];
  size_t have;
};

// Reads the acknowledgements that have come. False when the connection has ended, or a number is impossible after `sent` bytes.
bool acknowledged_read(struct acknowledged *acknowledged, int fd, uint64_t sent);

#endif
