// The monotonic clock in milliseconds, and deadlines on it.
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

#define NEVER UINT64_MAX

uint64_t clock_ms(void);
// The earlier of two moments.
uint64_t clock_first(uint64_t one, uint64_t other);
// `now + ms`; a length that is too large means never.
uint64_t clock_after(uint64_t now, uint64_t ms);
// The timeout for epoll_wait: -1 for never.
int clock_timeout(uint64_t now, uint64_t deadline);

#endif
