// A parsed `run`; strings point into its own copy of the payload.
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include "failure.h"
#include "fields.h"
#include "identity.h"
#include "trust.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORKLOAD_MOUNTS_MAX = 32 };

struct volume {
  const char *path;
  const char *device; // as disks.h has it
  bool readonly;
  const char *overlay_device; // NULL without one
};

struct workload {
  uint8_t *payload;
  struct fields nested[WORKLOAD_MOUNTS_MAX];
  size_t nested_count;
  char **argv;
  char **env;
  const char *cwd;
  const char *user;
  bool agent;
  const char *kernel_headers; // a device with more files for the root, as disks.h has it; NULL without one
  struct identity identity; // as the last `run` or `wake` gave it
  size_t trust_length; // of the bundle that came before; only with `trusts`
  bool trusts;
  const struct trust *trust; // what came before; NULL when there is none, and after the start
  struct volume volumes[WORKLOAD_MOUNTS_MAX]; // outer mount points first
  size_t volume_count;
};

// Copies what it needs out of the frame. On failure the workload is as empty as before.
bool workload_parse(struct workload *workload, const uint8_t *payload, size_t length, struct failure *failure);
// Parses the bytes of a `mount` field; the resulting fields live as long as `nested`.
bool volume_parse(const struct field *field, struct fields *nested, struct volume *volume, struct failure *failure);
void workload_free(struct workload *workload);

#endif
