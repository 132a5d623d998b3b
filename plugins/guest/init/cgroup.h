// The control groups of the program and of exec'd commands, and their memory events.
#ifndef CGROUP_H
#define CGROUP_H

#include <stdint.h>

struct cgroups {
  int root; // folders, -1 without control groups
  int program;
  int commands;
};

// Mounts the hierarchy and makes the groups; without them everything else still works.
void cgroups_make(struct cgroups *cgroups, const char *mount_point);
// Lets an init divide its group, with every available controller. Other programs do not need this.
void cgroups_delegate(const struct cgroups *cgroups);
// A group below another one; -1 with errno.
int cgroups_open(int folder, const char *name);
// Must be called when nothing runs in the group any more.
void cgroups_remove(int folder, const char *name);
// How many processes the kernel killed for want of memory: in the program's group, or, without one, in the whole machine.
uint64_t cgroups_oom_kills(const struct cgroups *cgroups);
// The number behind `name` and a space at the start of a line; 0 when there is none.
uint64_t counter_value(const char *text, const char *name);

#endif
