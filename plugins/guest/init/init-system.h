// An image whose program is an init: recognizes it, and knows which signal stops it.
#ifndef INIT_SYSTEM_H
#define INIT_SYSTEM_H

#include "workload.h"

enum init_system { INIT_NONE, INIT_SYSTEMD, INIT_BUSYBOX, INIT_SYSV, INIT_OTHER };

// Must be called in the workload's root: links are followed to tell one init from another.
enum init_system init_system_of(const struct workload *workload);
// The signal that stops this init in order, when the host asks for `signal`.
int init_system_stop_signal(enum init_system init, int signal);
// Whether process 1 of a namespace ended because something in it has switched the machine off, or asked for a reboot.
bool init_system_switched_off(int wait_status);

#endif
