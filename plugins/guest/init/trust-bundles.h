// The bundles of an image: files with all its authorities. Each distribution has its own path, and often several names for one file.
#ifndef TRUST_BUNDLES_H
#define TRUST_BUNDLES_H

#include "trust.h"
#include <stdbool.h>
#include <stddef.h>

// Real bundles have at most 0.6 MB.
enum { TRUST_BUNDLE_PATHS = 12, TRUST_FILE_MAX = 4 * 1024 * 1024 };

// The task, and its results.
struct trust_work {
  int root;
  const struct trust *trust; // without a certificate: take everything out
  const char *known[3]; // certificates that may stand in bundles without our marks; NULL ends
  char *block; // the certificate with our marks
  size_t block_length;
  const char *primary; // a bundle that has it
  int bundles, problems;
};

// Logs and counts a failure.
void trust_problem(struct trust_work *work, const char *path, int error);
// Appends the block to each bundle, or removes it from each.
void trust_bundles(struct trust_work *work);

#endif
