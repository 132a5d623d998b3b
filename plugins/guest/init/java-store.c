// A bundle of certificates in Java's format JKS. Numbers have their high byte first, and a length precedes each text:
// magic, version, number of entries; for each entry its kind, name, time, kind of certificate, and the certificate's bytes
// with their length; at the end SHA-1 of the password, a phrase, and all bytes before.
#include "java-store.h"
#include "sha1.h"
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARK = 0xfeedfeed, VERSION = 2, CERTIFICATE = 2, HEADER = 12 };

#define BEGIN "-----BEGIN CERTIFICATE-----"
#define END "-----END CERTIFICATE-----"

static uint8_t *put_number(uint8_t *at, uint32_t number) {
  number = htobe32(number);
  return mempcpy(at, &number, sizeof number);
}

static uint8_t *put_text(uint8_t *at, const char *text) {
  uint16_t length = htobe16((uint16_t)strlen(text));
  return mempcpy(mempcpy(at, &length, sizeof length), text, strlen(text));
}

enum { SPACE = 64, OTHER = 65 };

// The value of each base64 character: a table, since a bundle has some hundred thousand characters, and a start waits for it.
static void fill_values(uint8_t values[256]) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", spaces[] = " \t\r\n";
  memset(values, OTHER, 256);
  for (uint8_t i = 0; i < sizeof digits - 1; i++) values[(unsigned char)digits[i]] = i;
  for (uint8_t i = 0; i < sizeof spaces - 1; i++) values[(unsigned char)spaces[i]] = SPACE;
}

// Decodes base64 with any white space in it; returns the number of bytes, 0 for invalid text.
static size_t decode(const uint8_t values[256], const char *text, const char *end, uint8_t *into) {
  uint8_t *at = into;
  uint32_t bits = 1;
  for (; text < end && *text != '='; text++) {
    uint8_t value = values[(unsigned char)*text];
    if (value == OTHER) return 0;
    if (value == SPACE) continue;
    bits = bits << 6 | value;
    if (bits < 1 << 24) continue;
    *at++ = (uint8_t)(bits >> 16);
    *at++ = (uint8_t)(bits >> 8);
    *at++ = (uint8_t)bits;
    bits = 1;
  }
  // Two or three digits are left when the number of bytes is no multiple of three.
  if (bits >= 1 << 18) *at++ = (uint8_t)(bits >> 10);
  if (bits >= 1 << 18) *at++ = (uint8_t)(bits >> 2);
  else if (bits >= 1 << 12) *at++ = (uint8_t)(bits >> 4);
  return (size_t)(at - into);
}

// Whether it is exactly one sequence of ASN.1.
static bool is_sequence(const uint8_t *der, size_t length) {
  size_t head = 2, size;
  if (length < head || der[0] != 0x30) return false;
  size = der[1];
  if (size > 0x80) {
    size_t bytes = size - 0x80;
    if (bytes > 3 || length < head + bytes) return false;
    for (size = 0; head < 2 + bytes; head++) size = size << 8 | der[head];
  } else if (size == 0x80) {
    return false;
  }
  return size == length - head;
}

// Writes an entry at `at`, or nothing when the text is an invalid certificate; returns the place of the next one.
static uint8_t *put_entry(uint8_t *at, const uint8_t values[256], const char *text, const char *end, uint32_t *count) {
  char name[32];
  snprintf(name, sizeof name, "berth-%u", *count);
  uint8_t *after = put_text(put_number(at, CERTIFICATE), name);
  memset(after, 0, sizeof (uint64_t)); // no time, so that the same bundle makes the same store
  after = put_text(after + sizeof (uint64_t), "X.509");
  uint8_t *der = after + sizeof (uint32_t);
  size_t length = decode(values, text, end, der);
  if (!is_sequence(der, length)) return at;
  put_number(after, (uint32_t)length);
  (*count)++;
  return der + length;
}

static uint8_t *put_digest(uint8_t *store, uint8_t *at) {
  static const char password[] = JAVA_STORE_PASSWORD, phrase[] = "Mighty Aphrodite";
  struct sha1 sha1;
  sha1_begin(&sha1);
  for (size_t i = 0; i < sizeof password - 1; i++) sha1_add(&sha1, (const char[]){ 0, password[i] }, 2);
  sha1_add(&sha1, phrase, sizeof phrase - 1);
  sha1_add(&sha1, store, (size_t)(at - store));
  sha1_end(&sha1, at);
  return at + SHA1_SIZE;
}

char *java_store(const char *text, size_t length, size_t *store_length) {
  const char *end = text + length, *next = text;
  // An entry's other bytes are fewer than the two lines around a certificate, and its certificate has fewer bytes than base64 digits.
  uint8_t *store = malloc(HEADER + length + SHA1_SIZE), *at = store + HEADER;
  uint8_t values[256];
  uint32_t count = 0;
  if (store == NULL) return NULL;
  fill_values(values);
  while ((next = memmem(next, (size_t)(end - next), BEGIN, sizeof BEGIN - 1)) != NULL) {
    next += sizeof BEGIN - 1;
    const char *last = memchr(next, '-', (size_t)(end - next));
    if (last == NULL || (size_t)(end - last) < sizeof END - 1) break;
    if (memcmp(last, END, sizeof END - 1) == 0) at = put_entry(at, values, next, last, &count);
    next = last;
  }
  put_number(put_number(put_number(store, MARK), VERSION), count);
  if (count > 0) {
    *store_length = (size_t)(put_digest(store, at) - store);
    return (char *)store;
  }
  free(store);
  errno = EINVAL;
  return NULL;
}
