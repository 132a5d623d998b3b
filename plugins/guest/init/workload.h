// What a `run` asks for, as parsed; strings point into its own copy of the payload.
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include "failure.h"
#include "fields.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORKLOAD_MOUNTS_MAX = 32, WORKLOAD_DNS_MAX = 8 };

struct volume {
  const char *path;
  const char *device;
  bool readonly;
  const char *overlay_device; // NULL without one
};

struct network {
  bool given;
  const char *mac;     // each NULL when absent
  const char *address; // a.b.c.d/len
  const char *gateway;
  const char *dns[WORKLOAD_DNS_MAX];
  size_t dns_count;
};

// What makes one clone of a memory image differ from the next; applied in one place.
struct identity {
  uint64_t realtime_ns; // 0: leave the clock alone
  const uint8_t *entropy;
  size_t entropy_length;
  const char *hostname;
  struct network network;
};

struct workload {
  uint8_t *payload;
  struct fields nested[WORKLOAD_MOUNTS_MAX + 1];
  size_t nested_count;
  char **argv;
  char **env;
  const char *cwd;
  const char *user;
  const char *hostname;
  bool agent;
  struct identity identity;
  struct volume volumes[WORKLOAD_MOUNTS_MAX]; // outer mount points first
  size_t volume_count;
};

// Copies what it needs out of the frame. On failure the workload is as empty as before.
bool workload_parse(struct workload *workload, const uint8_t *payload, size_t length, struct failure *failure);
void workload_free(struct workload *workload);

#endif
