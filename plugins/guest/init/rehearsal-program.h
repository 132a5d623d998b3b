// The program of a rehearsal: this executable again; it makes the system calls that programs usually make when they start.
#ifndef REHEARSAL_PROGRAM_H
#define REHEARSAL_PROGRAM_H

#include "failure.h"
#include <stdbool.h>

#define REHEARSAL_PROGRAM "/rehearsal"

// In the new root: uses the image's own copy of this program, or writes a new one.
bool rehearsal_program_place(struct failure *failure);
// Runs as that program when `argument`, its first, says so; returns its exit code, or -1 when this is not the program of a rehearsal.
int rehearsal_program_run(const char *argument);

#endif
