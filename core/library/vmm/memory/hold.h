// Memory that a VMM inherits under a fixed descriptor number, by which others find it.
#ifndef HOLD_H
#define HOLD_H

#include <stdbool.h>
#include <sys/types.h>

// Opens so much memory for the program that follows.
bool hold(off_t bytes);
// Opens the memory that the VMM with this pid holds, for reading; -1 with errno. A guest may control the VMM.
int held_by(const char *pid);

#endif
