// One descriptor in the epoll loop, with the events that its owner currently wants.
#ifndef WATCH_H
#define WATCH_H

#include <stdbool.h>
#include <stdint.h>

// Handlers must tolerate spurious calls: every watched descriptor is non-blocking.
struct watch {
  int fd;
  uint32_t wanted;
  void (*ready)(struct watch *watch, uint32_t events);
  void *owner;
};

void watch_init(struct watch *watch, int fd, void (*ready)(struct watch *, uint32_t), void *owner);
// 0 takes the descriptor out of epoll altogether, since epoll would go on reporting a hang-up.
// False when the descriptor cannot be polled (a regular file): it is always ready then.
bool watch_want(int epoll, struct watch *watch, uint32_t events);
// Removed from epoll first: a child may hold a copy of the descriptor, which epoll would report for ever.
void watch_close(int epoll, struct watch *watch);

#endif
