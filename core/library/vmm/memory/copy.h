// Makes one large file that is mostly holes equal to another, and writes only where they differ: a copy that was made ahead is brought up to date as quickly as both can be read.
#ifndef COPY_H
#define COPY_H

#include <stdbool.h>
#include <sys/types.h>

// A file to read; -1 with errno.
int copy_source(const char *path);
// A file of this size to write, made when it is not there; -1 with errno.
int copy_target(const char *path, off_t bytes);
// With one thread for each processor, up to four. The source may be written meanwhile: the copy is of no one moment then. False with errno.
bool copy_all(int source, int target, off_t bytes);

#endif
