// Waits for devices by the kernel's own announcements, so that no sleep is needed.
#ifndef UEVENTS_H
#define UEVENTS_H

#include <stdbool.h>

// To be opened before what announces the device is begun. -1 when there is no such socket.
int uevents_open(void);
// Waits until `ready` says true, asking it again after each announcement that contains `part`; false after `limit_ms`.
bool uevents_wait(int uevents, const char *part, bool (*ready)(void *owner), void *owner, int limit_ms);

#endif
