// The stream to the host: syncs, frames in, frames out, and back-pressure in both directions.
#ifndef CONNECTION_H
#define CONNECTION_H

#include "frame.h"
#include "queue.h"
#include "watch.h"
#include <stdbool.h>

struct connection_events {
  // The host has synced; earlier frames are void. The answer is queued already.
  void (*opened)(void *owner);
  // The host is away.
  void (*lost)(void *owner);
  void (*frame)(void *owner, const struct frame *frame);
};

struct connection {
  int epoll;
  struct watch listener; // -1: the stream is there for good, as a virtio-serial port is
  struct watch watch;    // -1: no host is there, and the listener will bring one
  bool readable;
  bool writable;
  bool synced;
  uint64_t lost_at; // when to believe that the host is away
  struct frame_parser parser;
  struct queue out;
  const struct connection_events *events;
  void *owner;
};

// `fd` is non-blocking: a virtio-serial port, a socket that listens for the host, or in tests a connected one. A listening socket's newest connection counts.
bool connection_init(struct connection *connection, int epoll, int fd, const struct connection_events *events, void *owner);
// Reads and writes as much as possible, up to a limit, so that others have their turn.
void connection_pump(struct connection *connection);
// Whether another call would read on at once.
bool connection_may_read(const struct connection *connection);
void connection_flush(struct connection *connection);
// Drops a host that has been away for a moment; returns when to look again.
uint64_t connection_update(struct connection *connection, uint64_t now);
// Queues a frame; dropped while no host has synced.
void connection_send(struct connection *connection, const struct frame *frame);
// Whether a producer of DATA may add a frame of the largest size. Small frames have a reserve beyond that.
bool connection_has_room(const struct connection *connection);

#endif
