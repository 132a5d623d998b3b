// The process namespace of an image's own init, for what is started in it later.
#ifndef NAMESPACE_H
#define NAMESPACE_H

#include <stdbool.h>
#include <sys/types.h>

struct namespace {
  int own;  // this program's; descriptors, -1 when the program is no init
  int init; // its process 1
};

// `init` has just been started in a namespace of its own; false with errno.
bool namespace_open(struct namespace *namespace, pid_t init);
// Children that are made between the two are born in it. False with errno: nothing has changed.
bool namespace_enter(const struct namespace *namespace);
void namespace_leave(const struct namespace *namespace);
// In such a child: the control groups are seen as the init sees them.
void namespace_see_groups(const struct namespace *namespace);

#endif
