// What the other end of a stream has said that it has in its file: after each piece the number of all bytes of this connection so far, 8 bytes, little-endian.
// So nothing is forgotten here that a connection which breaks, as at a restore, could still lose.
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

// Reads what is there. False when the connection is over, or what came is no number that can be true with `sent` bytes sent.
bool acknowledged_read(struct acknowledged *acknowledged, int fd, uint64_t sent);

#endif
