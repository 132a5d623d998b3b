// Where a VMM has the memory that it maps privately of a file.
#ifndef MAPPING_H
#define MAPPING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// Finds the one private mapping of all `bytes` of the file in the process; false with errno, ENOENT when there is none. The process may be in a guest's hands: whatever it maps, what is found lies in
// its own memory.
bool mapping_of(const char *pid, const char *file, off_t bytes, uintptr_t *start);
// Opens a file of the process below /proc; -1 with errno.
int open_of(const char *pid, const char *name, int flags);

#endif
