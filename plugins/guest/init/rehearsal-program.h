// The program of a rehearsal: this one again, which asks the kernel for what programs usually ask for when they start.
#ifndef REHEARSAL_PROGRAM_H
#define REHEARSAL_PROGRAM_H

#include "failure.h"
#include <stdbool.h>

#define REHEARSAL_PROGRAM "/rehearsal"

// In the new root: the image's own copy of this program, or else a new one.
bool rehearsal_program_place(struct failure *failure);
// As that program, `argument` being its first; its exit code, or -1 when it is not the program of a rehearsal.
int rehearsal_program_run(const char *argument);

#endif
