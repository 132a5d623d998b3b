// Waits for devices by the kernel's own announcements, so that no sleep is needed.
#ifndef UEVENTS_H
#define UEVENTS_H

#include <stdbool.h>

// Must be opened before the device can be announced. -1 when there is no such socket.
int uevents_open(void);
// Waits until `ready` returns true, calling it again after each announcement that contains `part`; false after `limit_ms`.
bool uevents_wait(int uevents, const char *part, bool (*ready)(void *owner), void *owner, int limit_ms);

#endif
