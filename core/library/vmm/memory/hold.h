// Memory that a VMM inherits under a fixed descriptor number, by which others find it.
#ifndef HOLD_H
#define HOLD_H

#include <stdbool.h>
#include <sys/types.h>

// Opens so much memory for the program that follows.
bool hold(off_t bytes);
// Opens a file for reading, whose path the program need not be able to reach, in the place of such memory.
bool lend(const char *path);
// Opens the memory that the VMM with this pid holds, for reading; -1 with errno. A guest may control the VMM.
int held_by(const char *pid);

#endif
