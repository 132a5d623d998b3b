// The bundles of an image: files with all its authorities, of which each distribution has its own, and often several names for one.
#ifndef TRUST_BUNDLES_H
#define TRUST_BUNDLES_H

#include "trust.h"
#include <stdbool.h>
#include <stddef.h>

// Real bundles have at most 0.6 MB.
enum { TRUST_BUNDLE_PATHS = 12, TRUST_FILE_MAX = 4 * 1024 * 1024 };

// What to do, and what was done.
struct trust_work {
  int root;
  const struct trust *trust; // without a certificate: take everything out
  const char *known[3]; // certificates that may stand in bundles without our marks; NULL ends
  char *block; // the certificate with our marks
  size_t block_length;
  const char *primary; // a bundle that has it
  int bundles, problems;
};

// Logs it, and counts it.
void trust_problem(struct trust_work *work, const char *path, int error);
// Appends the block to each bundle, or takes it out of each.
void trust_bundles(struct trust_work *work);

#endif
