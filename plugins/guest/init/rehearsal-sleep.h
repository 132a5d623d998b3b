// Falling asleep, rehearsed: a process that stands for a program is stopped, the disks are flushed, and it goes on.
#ifndef REHEARSAL_SLEEP_H
#define REHEARSAL_SLEEP_H

#include "cgroup.h"

// In the actor, when its program has ended. Does nothing without control groups: what fails only makes the first sleep slower.
void rehearsal_sleep(const struct cgroups *cgroups);

#endif
