// Key stores for Java, and the hash at their end.
#include "check.h"
#include "java-store.h"
#include "sha1.h"
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PEM(body) "-----BEGIN CERTIFICATE-----\n" body "\n-----END CERTIFICATE-----\n"

static bool hashes_to(const char *text, size_t times, size_t piece, const char *wanted) {
  struct sha1 sha1;
  uint8_t digest[SHA1_SIZE];
  char found[2 * SHA1_SIZE + 1];
  sha1_begin(&sha1);
  for (size_t i = 0; i < times; i++) {
    size_t length = strlen(text);
    for (size_t at = 0; at < length; at += piece) sha1_add(&sha1, text + at, length - at < piece ? length - at : piece);
  }
  sha1_end(&sha1, digest);
  for (int i = 0; i < SHA1_SIZE; i++) sprintf(found + 2 * i, "%02x", digest[i]);
  return strcmp(found, wanted) == 0;
}

static void hash(void) {
  const char *const two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  check(hashes_to("", 1, 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709") && hashes_to("abc", 1, 3, "a9993e364706816aba3e25717850c26c9cd0d89d") &&
        hashes_to(two, 1, 56, "84983e441c3bd26ebaae4aa1f95129e5e54670f1"), "SHA-1 is that of the standard");
  check(hashes_to("aaaaaaaaaa", 100000, 7, "34aa973cd4c4daa4f61eeb2bdbad27316534016f") && hashes_to(two, 1, 9, "84983e441c3bd26ebaae4aa1f95129e5e54670f1"), "in pieces of any size, too");
}

static bool is_store(const char *text, const void *wanted, size_t wanted_length) {
  size_t length = 0;
  char *copy = strndup(text, strlen(text)), *store = java_store(copy, strlen(text), &length);
  bool same = store != NULL && length == wanted_length + SHA1_SIZE && memcmp(store, wanted, wanted_length) == 0;
  free(store);
  free(copy);
  return same;
}

// `keytool` says the same of both.
static const char one[] = "\xfe\xed\xfe\xed\0\0\0\2\0\0\0\1" "\0\0\0\2\0\7berth-0\0\0\0\0\0\0\0\0\0\5X.509\0\0\0\5\x30\3\2\1\1";
static const char two[] = "\xfe\xed\xfe\xed\0\0\0\2\0\0\0\2" "\0\0\0\2\0\7berth-0\0\0\0\0\0\0\0\0\0\5X.509\0\0\0\5\x30\3\2\1\1"
  "\0\0\0\2\0\7berth-1\0\0\0\0\0\0\0\0\0\5X.509\0\0\0\4\x30\2\5\0";
#define ONE PEM("MAMCAQE=")
#define TWO PEM("MAIFAA==")

static void stores(void) {
  size_t length = 0;
  check(is_store(ONE, one, sizeof one - 1) && is_store("# roots\n" ONE "\nsomething between\n" TWO, two, sizeof two - 1), "each certificate is an entry, with a name of its own");
  check(is_store(PEM("MA\r\nMC\tAQ\nE="), one, sizeof one - 1), "however its lines are broken");
  check(is_store(PEM("T1dO") ONE PEM("MAMCAQ==") PEM("MAMCAQEA") PEM("MIADAgEB") PEM("MIX/////") PEM("MA") PEM("") PEM("MAMC*QE=") PEM("M") "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END TRUSTED CERTIFICATE-----\n"
    "-----BEGIN TRUSTED CERTIFICATE-----\nMAMCAQE=\n-----END TRUSTED CERTIFICATE-----\n" "-----BEGIN CERTIFICATE-----\nMAMCAQE=", one, sizeof one - 1), "what Java would refuse all of the store for is left out");
  check(is_store("-----BEGIN CERTIFICATE-----MAMCAQE=-----END CERTIFICATE-----BEGIN CERTIFICATE-----MAIFAA==-----END CERTIFICATE-----", two, sizeof two - 1), "marks may share their dashes");
  errno = 0;
  check(java_store("", 0, &length) == NULL && errno == EINVAL && java_store("text", 4, &length) == NULL && java_store(PEM("T1dO"), sizeof PEM("T1dO") - 1, &length) == NULL, "without a certificate there is no store");
  // The digest: of the password with two bytes to a letter, the phrase, and the store.
  char *store = java_store(ONE, sizeof ONE - 1, &length);
  struct sha1 sha1;
  uint8_t digest[SHA1_SIZE];
  sha1_begin(&sha1);
  sha1_add(&sha1, "\0c\0h\0a\0n\0g\0e\0i\0tMighty Aphrodite", 32);
  sha1_add(&sha1, one, sizeof one - 1);
  sha1_end(&sha1, digest);
  check(store != NULL && length == sizeof one - 1 + SHA1_SIZE && memcmp(store + length - SHA1_SIZE, digest, SHA1_SIZE) == 0, "the password is the one that Java's own store has");
  free(store);
}

static void hostile(void) {
  static const char *const patterns[] = { "-----BEGIN CERTIFICATE-----\n", ONE, "-----BEGIN CERTIFICATE-----MA-----END CERTIFICATE-----", "-" };
  size_t length = 4 << 20, store_length = 0;
  char *many = malloc(length);
  clock_t began = clock();
  for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
    for (size_t at = 0; at < length; at++) many[at] = patterns[i][at % strlen(patterns[i])];
    free(java_store(many, length, &store_length));
  }
  check(clock() - began < 10 * CLOCKS_PER_SEC && store_length > 1 << 20, "a hostile bundle costs no more than another, and stays within bounds");
  free(many);
}

int main(void) {
  hash();
  stores();
  hostile();
  return checks_end();
}
