// SHA-1 as specified in FIPS 180-4.
#include "sha1.h"
#include <endian.h>
#include <string.h>

static uint32_t turned(uint32_t word, int bits) {
  return word << bits | word >> (32 - bits);
}

static uint32_t chosen(uint32_t b, uint32_t c, uint32_t d) {
  return d ^ (b & (c ^ d));
}

static uint32_t odd(uint32_t b, uint32_t c, uint32_t d) {
  return b ^ c ^ d;
}

static uint32_t most(uint32_t b, uint32_t c, uint32_t d) {
  return (b & c) | (d & (b | c));
}

// Twenty rounds of one kind.
#define ROUNDS(from, mixed, constant) \
  for (int i = from; i < from + 20; i++) { \
    uint32_t next = turned(a, 5) + mixed(b, c, d) + constant + e + words[i]; \
    e = d; \
    d = c; \
    c = turned(b, 30); \
    b = a; \
    a = next; \
  }

static void add_block(uint32_t state[5], const uint8_t *block) {
  uint32_t words[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
  memcpy(words, block, SHA1_BLOCK);
  for (int i = 0; i < 16; i++) words[i] = be32toh(words[i]);
  for (int i = 16; i < 80; i++) words[i] = turned(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  ROUNDS(0, chosen, 0x5a827999)
  ROUNDS(20, odd, 0x6ed9eba1)
  ROUNDS(40, most, 0x8f1bbcdc)
  ROUNDS(60, odd, 0xca62c1d6)
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
}

void sha1_begin(struct sha1 *sha1) {
  *sha1 = (struct sha1){ .state = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 } };
}

void sha1_add(struct sha1 *sha1, const void *bytes, size_t length) {
  const uint8_t *at = bytes;
  while (length > 0) {
    size_t have = sha1->length % SHA1_BLOCK, part = SHA1_BLOCK - have < length ? SHA1_BLOCK - have : length;
    memcpy(sha1->block + have, at, part);
    if (have + part == SHA1_BLOCK) add_block(sha1->state, sha1->block);
    sha1->length += part;
    at += part;
    length -= part;
  }
}

void sha1_end(struct sha1 *sha1, uint8_t into[SHA1_SIZE]) {
  static const uint8_t padding[SHA1_BLOCK] = { 0x80 };
  uint64_t bits = htobe64(sha1->length * 8);
  sha1_add(sha1, padding, 1 + (SHA1_BLOCK * 2 - 9 - sha1->length % SHA1_BLOCK) % SHA1_BLOCK);
  sha1_add(sha1, &bits, sizeof bits);
  for (int i = 0; i < 5; i++) sha1->state[i] = htobe32(sha1->state[i]);
  memcpy(into, sha1->state, SHA1_SIZE);
}
