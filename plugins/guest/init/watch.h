// One descriptor in the epoll loop, with the events that its owner wants at the moment.
#ifndef WATCH_H
#define WATCH_H

#include <stdbool.h>
#include <stdint.h>

// Handlers must stand spurious calls: every watched descriptor is non-blocking.
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
// Out of epoll first: a child may hold a copy of the descriptor, and epoll would report that one for ever.
void watch_close(int epoll, struct watch *watch);

#endif
