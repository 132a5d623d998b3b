// The program of a rehearsal: this executable again; it makes the system calls that programs usually make when they start.
#ifndef REHEARSAL_PROGRAM_H
#define REHEARSAL_PROGRAM_H

#include "failure.h"
#include <stdbool.h>

#define REHEARSAL_PROGRAM "/rehearsal"

// In the new root: uses the image's own copy of this program, or writes a new one.
bool rehearsal_program_place(struct failure *failure);
// Once it has ended, in the root in which it was placed: writes over a copy that was made, and removes it. An emulator has translated its code, and makes every write slow that goes to a
// page with translated code; so whoever got these pages next would pay for it.
void rehearsal_program_wipe(void);
// Runs as that program when `argument`, its first, says so; returns its exit code, or -1 when this is not the program of a rehearsal.
int rehearsal_program_run(const char *argument);

#endif
