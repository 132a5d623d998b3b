// One descriptor in the epoll loop, with the events that its owner currently wants.
#include "watch.h"
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

void watch_init(struct watch *watch, int fd, void (*ready)(struct watch *, uint32_t), void *owner) {
  *watch = (struct watch){ .fd = fd, .ready = ready, .owner = owner };
}

bool watch_want(int epoll, struct watch *watch, uint32_t events) {
  if (watch->fd < 0 || watch->wanted == events) return true;
  struct epoll_event event = { .events = events, .data.ptr = watch };
  int operation = EPOLL_CTL_MOD;
  if (events == 0) operation = EPOLL_CTL_DEL;
  else if (watch->wanted == 0) operation = EPOLL_CTL_ADD;
  if (epoll_ctl(epoll, operation, watch->fd, &event) < 0) return false;
  watch->wanted = events;
  return true;
}

void watch_close(int epoll, struct watch *watch) {
  if (watch->fd < 0) return;
  watch_want(epoll, watch, 0);
  close(watch->fd);
  watch->fd = -1;
}
