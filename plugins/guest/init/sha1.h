// SHA-1: Java's key stores end with one. No security depends on it.
#ifndef SHA1_H
#define SHA1_H

#include <stddef.h>
#include <stdint.h>

enum { SHA1_SIZE = 20, SHA1_BLOCK = 64 };

struct sha1 {
  uint32_t state[5];
  uint64_t length;
  uint8_t block[SHA1_BLOCK]; // what has not made a whole one yet
};

void sha1_begin(struct sha1 *sha1);
void sha1_add(struct sha1 *sha1, const void *bytes, size_t length);
void sha1_end(struct sha1 *sha1, uint8_t into[SHA1_SIZE]);

#endif
