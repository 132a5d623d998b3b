// The pages of a guest's memory that differ from the file which its VMM maps privately, in a file of their own: dense, so that no copy can take a page of zeros for a hole.
#ifndef CHANGES_H
#define CHANGES_H

#include <stdbool.h>
#include <sys/types.h>

// Each returns false with errno.

// Writes what the VMM with this pid, whose guest stands still, has changed of the file `base` of so many bytes; `target` must not exist. Nothing is left of it after a failure.
bool changes_write(const char *pid, const char *base, off_t bytes, const char *target);
// Puts the pages of a file of changes into the memory that the VMM maps of `base`.
bool changes_fill(const char *pid, const char *base, off_t bytes, const char *changes);
// Puts them into a file: a copy of the base.
bool changes_merge(const char *changes, off_t bytes, const char *target);

#endif
