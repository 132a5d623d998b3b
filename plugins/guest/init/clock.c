// The monotonic clock in milliseconds, and deadlines on it.
#include "clock.h"
#include <time.h>

uint64_t clock_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t clock_first(uint64_t one, uint64_t other) {
  return one < other ? one : other;
}

uint64_t clock_after(uint64_t now, uint64_t ms) {
  return ms > NEVER / 2 ? NEVER : now + ms;
}

int clock_timeout(uint64_t now, uint64_t deadline) {
  if (deadline == NEVER) return -1;
  if (deadline <= now) return 0;
  uint64_t left = deadline - now;
  return left > 60000 ? 60000 : (int)left;
}
