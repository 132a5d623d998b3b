// Waits for devices by the kernel's own announcements, so that no sleep is needed.
#ifndef UEVENTS_H
#define UEVENTS_H

#include <stdbool.h>

// Waits until `ready` returns true, calling it again after each announcement that contains `part`; false after `limit_ms`. Listens only when it is not true at once:
// while somebody listens the kernel writes each announcement out.
bool uevents_wait(const char *part, bool (*ready)(void *owner), void *owner, int limit_ms);

#endif
