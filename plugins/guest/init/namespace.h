// The process namespace of an image's own init, in which commands are started later.
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
// From now on children are born in it, until `namespace_leave`. False with errno: nothing has changed.
bool namespace_enter(const struct namespace *namespace);
void namespace_leave(const struct namespace *namespace);
// In such a child: shows the control groups as the init sees them.
void namespace_see_groups(const struct namespace *namespace);

#endif
