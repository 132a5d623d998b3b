// The kinds `listen`, `accept` and `connect`: a port of loopback and its connections, and those to a program, each a channel of the host.
#ifndef LISTEN_H
#define LISTEN_H

#include "channel.h"
#include "failure.h"
#include "fields.h"

enum listen_role {
  LISTEN_PORT,    // `listen`: the port itself
  LISTEN_WAITING, // `accept`: the next connection is its
  LISTEN_CALLING, // `connect`: its connection is being made
  LISTEN_TALKING, // it has one
};

struct listen_channel {
  bool used;
  uint32_t id;
  enum listen_role role;
  struct listen *listen;
  uint16_t port;
  uint64_t turn; // the lowest has waited longest
  struct watch watch;

  struct queue pending; // for the program
  bool input_ended;     // by the host
  bool input_over;      // the program has been told, or takes no more
  uint32_t input_credit;
  uint32_t input_taken;
  bool output_ended;
  uint32_t output_credit;
};

struct listen {
  struct connection *connection;
  uint64_t turns;
  struct listen_channel channels[CHANNEL_MAX];
};

void listen_init(struct listen *listen, struct connection *connection);
// How many of the host's channels are of these kinds.
int listen_count(const struct listen *listen);
bool listen_has(const struct listen *listen, uint32_t id);
// The caller has checked that there is room for another channel.
bool listen_open(struct listen *listen, uint32_t id, const struct fields *fields, struct failure *failure);
bool accept_open(struct listen *listen, uint32_t id, const struct fields *fields, struct failure *failure);
bool connect_open(struct listen *listen, uint32_t id, const struct fields *fields, struct failure *failure);
// Handles a frame of the host; false when its channel is of another kind.
bool listen_frame(struct listen *listen, const struct frame *frame);
// The host is away: all of them are closed.
void listen_drop(struct listen *listen);
// In a fork of the agent: lets go of the copies of their descriptors.
void listen_forget(const struct listen *listen);
// Brings interests up to date and closes ended channels.
void listen_update(struct listen *listen);

#endif
