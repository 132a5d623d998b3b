// Makes one large file that is mostly holes equal to another, and writes only the differences: a copy that was made ahead is updated as quickly as both can be read.
#ifndef COPY_H
#define COPY_H

#include <stdbool.h>
#include <sys/types.h>

// Opens a file to read; -1 with errno.
int copy_source(const char *path);
// Opens a file of this size to write, made when it does not exist; -1 with errno.
int copy_target(const char *path, off_t bytes);
// Copies with one thread for each processor, up to four. If the source is written meanwhile, the copy is of no single moment. False with errno.
bool copy_all(int source, int target, off_t bytes);

#endif
