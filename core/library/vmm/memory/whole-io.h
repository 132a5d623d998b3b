// Reads and writes without a short count.
#ifndef WHOLE_IO_H
#define WHOLE_IO_H

#include <stdbool.h>
#include <sys/types.h>

// An end of the file before `size` bytes is EIO.
bool read_all(int fd, char *to, size_t size, off_t at);
bool write_all(int fd, const char *from, size_t size, off_t at);

#endif
