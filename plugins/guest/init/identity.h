// What makes one machine differ from the next: time, randomness, name and address; given at a start and to each clone of a memory image.
#ifndef IDENTITY_H
#define IDENTITY_H

#include "failure.h"
#include "fields.h"
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DNS_MAX = 8, ENTROPY_MAX = 256, NAME_SIZE = 65, MAC_SIZE = 18, ADDRESS_SIZE = INET_ADDRSTRLEN + 3 };

// Texts are empty when the host did not give them.
struct network {
  bool given;
  char mac[MAC_SIZE];
  char address[ADDRESS_SIZE]; // a.b.c.d/len
  char gateway[INET_ADDRSTRLEN];
  char dns[DNS_MAX][INET6_ADDRSTRLEN];
  size_t dns_count;
};

struct identity {
  uint64_t realtime_ns; // 0: leave the clock alone
  uint8_t entropy[ENTROPY_MAX];
  size_t entropy_length;
  char hostname[NAME_SIZE];
  bool new_machine; // the clone is a machine of its own, not one that goes on
  struct network network;
};

// Opens early what every `run` and `wake` needs.
void identity_prepare(void);
// Reads the fields of a `run` or `wake`. Everything is validated here, before anything is applied.
bool identity_parse(const struct fields *fields, struct identity *identity, struct failure *failure);
// Overwrites the machine's identity with the fields that a later message has.
void identity_merge(struct identity *now, const struct identity *later);
// Sets clock, randomness and hostname, in this order, and continues after a failure; `failure` gets the first one. The network is applied by itself: network.h.
bool identity_apply(const struct identity *identity, struct failure *failure);

#endif
