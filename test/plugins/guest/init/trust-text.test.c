// The egress authority: how it comes in pieces, and how it is taken out of texts again.
#include "check.h"
#include "protocol.h"
#include "trust-place.h"
#include "trust-text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PEM(body) "-----BEGIN CERTIFICATE-----\n" body "\n-----END CERTIFICATE-----\n"

static const char own[] = PEM("T1dO"), other[] = PEM("T1RIRVI="), roots[] = "# roots\n" PEM("Uk9PVEE=") PEM("Uk9PVEI=");

static bool take(struct trust *trust, const char *certificate, const char *hash, const char *piece, size_t length, struct failure *failure) {
  uint8_t *bytes = malloc(length + 70000);
  struct writer writer = { .bytes = bytes, .capacity = length + 69999 };
  struct fields fields;
  write_string(&writer, TAG_KIND, "trust");
  if (certificate != NULL) write_string(&writer, TAG_CERTIFICATE, certificate);
  if (hash != NULL) write_string(&writer, TAG_SUBJECT_HASH, hash);
  if (piece != NULL) write_field(&writer, TAG_BUNDLE, piece, length);
  bool good = fields_parse(bytes, writer.length, &fields) == 0 && trust_take(trust, &fields, failure);
  fields_free(&fields);
  free(bytes);
  return good;
}

static void pieces(void) {
  struct trust trust = { 0 };
  struct failure failure = { 0 };
  check(take(&trust, own, "0123abcd", "one ", 4, &failure) && take(&trust, NULL, NULL, "two", 3, &failure) && strcmp(trust.bundle, "one two") == 0 &&
        strcmp(trust.certificate, own) == 0 && strcmp(trust.hash, "0123abcd") == 0, "pieces are joined in their order");
  check(trust_is_whole(&trust, 7, &failure) && !trust_is_whole(&trust, 8, &failure) && failure.error == EINVAL, "a run counts on their sum");
  check(take(&trust, other, "00000000", NULL, 0, &failure) && trust.bundle == NULL && trust_is_whole(&trust, 0, &failure), "a certificate begins anew");
  trust_free(&trust);
  check(!take(&trust, NULL, NULL, "x", 1, &failure) && failure.error == EINVAL && trust.bundle == NULL, "a piece without a certificate before it is refused");
  const char *const bad[] = { "", "hello", "-----BEGIN CERTIFICATE-----\n", PEM("A") PEM("B"), "x" PEM("A"), PEM("A\n# comment"), "-----BEGIN CERTIFICATE-----END CERTIFICATE-----" };
  bool refused = true;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) refused = refused && !take(&trust, bad[i], "0123abcd", NULL, 0, &failure) && trust.certificate == NULL;
  check(refused, "what is not one certificate is refused");
  check(!take(&trust, own, "0123abcg", NULL, 0, &failure) && !take(&trust, own, "0123abc", NULL, 0, &failure) && !take(&trust, own, "../../ab", NULL, 0, &failure) &&
        !take(&trust, own, NULL, NULL, 0, &failure), "so is what is no hash");
  char *piece = malloc(65000), *large = malloc(TRUST_CERTIFICATE_MAX + 100);
  memset(piece, 'x', 65000);
  bool taken = take(&trust, own, "0123abcd", NULL, 0, &failure);
  for (int i = 0; i < 16; i++) taken = taken && take(&trust, NULL, NULL, piece, 65000, &failure);
  check(taken && !take(&trust, NULL, NULL, piece, 65000, &failure) && failure.error == E2BIG && trust.bundle == NULL && trust.certificate == NULL, "at most 1 MiB is held, and after a refusal nothing");
  memset(large, 'A', TRUST_CERTIFICATE_MAX + 99);
  memcpy(large, own, 28);
  strcpy(large + TRUST_CERTIFICATE_MAX + 60, "\n-----END CERTIFICATE-----\n");
  check(pem_is_one(large, strlen(large)) && !take(&trust, large, "0123abcd", NULL, 0, &failure) && trust.certificate == NULL, "a certificate has at most 16 KiB");
  free(large);
  free(piece);
}

static bool stripped_is(const char *text, const char *wanted) {
  const char *const known[] = { own, NULL };
  char *copy = strdup(text);
  size_t length = trust_strip(copy, strlen(text), known);
  bool same = length == strlen(wanted) && memcmp(copy, wanted, length) == 0;
  free(copy);
  return same;
}

static void texts(void) {
  check(stripped_is("", "") && stripped_is(roots, roots) && stripped_is("no newline", "no newline"), "what is not ours stays as it is");
  check(stripped_is(PEM("A") TRUST_BEGIN PEM("X") TRUST_END PEM("B"), PEM("A") PEM("B")), "our block goes, whatever is in it");
  check(stripped_is(PEM("A") PEM("T1dO") PEM("B") "-----BEGIN CERTIFICATE-----\r\nT1\r\ndO\r\n-----END CERTIFICATE-----\r\n", PEM("A") PEM("B")), "so does the certificate, however its lines are broken");
  check(stripped_is(PEM("T1dOT1dO"), PEM("T1dOT1dO")) && stripped_is(PEM("T1d"), PEM("T1d")), "one that only begins alike stays");
  check(stripped_is(TRUST_BEGIN PEM("A"), PEM("A")) && stripped_is(TRUST_BEGIN PEM("A") TRUST_BEGIN "x\n" TRUST_END PEM("B"), PEM("A") PEM("B")), "a torn block takes nothing else with it");
  check(stripped_is("a " TRUST_BEGIN, "a " TRUST_BEGIN), "a mark counts at the beginning of a line");
  size_t length = 4 << 20;
  char *many = malloc(length + 1);
  const char *const known[] = { own, other, NULL };
  for (size_t at = 0; at < length; at++) many[at] = "-----BEGIN CERTIFICATE-----\n"[at % 28];
  clock_t began = clock();
  check(trust_strip(many, length, known) == length && clock() - began < 5 * CLOCKS_PER_SEC, "a hostile file of beginnings costs no more than another");
  for (size_t at = 0; at < length; at++) many[at] = TRUST_BEGIN[at % (sizeof TRUST_BEGIN - 1)];
  began = clock();
  check(trust_strip(many, length, known) < sizeof TRUST_BEGIN && clock() - began < 5 * CLOCKS_PER_SEC, "nor one of our marks");
  free(many);
}

int main(void) {
  pieces();
  texts();
  return checks_end();
}
