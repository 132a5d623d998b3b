// Memory that a VMM inherits under a number, and by which others find it.
#ifndef HOLD_H
#define HOLD_H

#include <stdbool.h>
#include <sys/types.h>

// Opens so much of it, for a program to come.
bool hold(off_t bytes);
// What the VMM with this number holds, for reading; -1 with errno. The VMM may be in a guest's hands.
int held_by(const char *pid);

#endif
