// The authority that the guest should trust besides those of its image: received in pieces before `run`, kept until it is placed.
#include "trust.h"
#include "protocol.h"
#include "trust-text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool malformed(struct failure *failure, const char *what) {
  return fail(failure, EINVAL, EXIT_BOOT_FAILED, "the trust is malformed: %s", what);
}

static bool hash_is_valid(const char *hash) {
  return strlen(hash) == TRUST_HASH_SIZE - 1 && strspn(hash, "0123456789abcdef") == TRUST_HASH_SIZE - 1;
}

static bool begin(struct trust *trust, const struct field *certificate, const char *hash, struct failure *failure) {
  const char *text = (const char *)certificate->bytes;
  trust_free(trust);
  if (certificate->length > TRUST_CERTIFICATE_MAX || !pem_is_one(text, certificate->length)) return malformed(failure, "certificate");
  if (!hash_is_valid(hash)) return malformed(failure, "subject hash");
  trust->certificate = malloc(certificate->length + 2);
  if (trust->certificate == NULL) return fail(failure, ENOMEM, EXIT_BOOT_FAILED, "out of memory");
  memcpy(trust->certificate, text, certificate->length + 1);
  if (text[certificate->length - 1] != '\n') strcpy(trust->certificate + certificate->length, "\n");
  strcpy(trust->hash, hash);
  return true;
}

static bool add(struct trust *trust, const struct field *piece, struct failure *failure) {
  if (piece->length > TRUST_BUNDLE_MAX - trust->bundle_length) {
    return fail(failure, E2BIG, EXIT_BOOT_FAILED, "the bundle of authorities is larger than %d bytes", TRUST_BUNDLE_MAX);
  }
  char *more = realloc(trust->bundle, trust->bundle_length + piece->length + 1);
  if (more == NULL) return fail(failure, ENOMEM, EXIT_BOOT_FAILED, "out of memory");
  memcpy(more + trust->bundle_length, piece->bytes, piece->length);
  trust->bundle = more;
  trust->bundle_length += piece->length;
  trust->bundle[trust->bundle_length] = 0;
  return true;
}

bool trust_take(struct trust *trust, const struct fields *fields, struct failure *failure) {
  const struct field *certificate = fields_find(fields, TAG_CERTIFICATE), *piece = fields_find(fields, TAG_BUNDLE);
  bool good = certificate == NULL || begin(trust, certificate, fields_string(fields, TAG_SUBJECT_HASH, ""), failure);
  if (good && trust->certificate == NULL) good = malformed(failure, "it does not begin with a certificate");
  if (good && piece != NULL) good = add(trust, piece, failure);
  if (!good) trust_free(trust);
  return good;
}

bool trust_is_whole(const struct trust *trust, size_t bundle_length, struct failure *failure) {
  if (trust->certificate != NULL && trust->bundle_length == bundle_length) return true;
  return malformed(failure, "it has not come whole");
}

void trust_free(struct trust *trust) {
  free(trust->certificate);
  free(trust->bundle);
  *trust = (struct trust){ 0 };
}
