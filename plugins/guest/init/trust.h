// The authority that the host wants trusted besides those of the image: taken in pieces before `run`, held until it is placed.
#ifndef TRUST_H
#define TRUST_H

#include "failure.h"
#include "fields.h"
#include <stdbool.h>
#include <stddef.h>

enum { TRUST_CERTIFICATE_MAX = 16 * 1024, TRUST_BUNDLE_MAX = 1024 * 1024, TRUST_HASH_SIZE = 9 };

struct trust {
  char *certificate; // one, PEM, with a newline at its end; NULL: none has been announced
  char hash[TRUST_HASH_SIZE]; // OpenSSL's, of its subject
  char *bundle; // what an image without authorities of its own is given
  size_t bundle_length;
};

// Takes one message of the kind `trust`: with a certificate it begins anew, any bundle in it is added. After a failure nothing is held.
bool trust_take(struct trust *trust, const struct fields *fields, struct failure *failure);
// Whether what came is what a `run` counts on.
bool trust_is_whole(const struct trust *trust, size_t bundle_length, struct failure *failure);
void trust_free(struct trust *trust);

#endif
