// The authority that the guest should trust besides those of its image: received in pieces before `run`, kept until it is placed.
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

// Takes one message of the kind `trust`: a certificate starts over, a piece of a bundle is added. After a failure nothing is kept.
bool trust_take(struct trust *trust, const struct fields *fields, struct failure *failure);
// Whether the received trust is complete, as `run` announces it.
bool trust_is_whole(const struct trust *trust, size_t bundle_length, struct failure *failure);
void trust_free(struct trust *trust);

#endif
