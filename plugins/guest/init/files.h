// Small files: read one whole, write one, replace one, make folders.
#ifndef FILES_H
#define FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// Reads at most `limit` bytes into memory that the caller frees, with a NUL behind. Never blocks on a pipe or device.
// Returns NULL with errno set.
char *file_read(const char *path, size_t limit, size_t *length);
char *file_read_at(int folder, const char *path, size_t limit, size_t *length);
// Writes into an existing file (of /proc, /sys); 0 or errno.
int file_write(int folder, const char *path, const char *text);
// Replaces whatever has the name, even a symbolic link, by a file; 0 or errno.
int file_replace(int folder, const char *name, const char *text, mode_t mode);
// Makes a folder and those above it; 0 or errno. An existing folder is fine.
int folder_make(const char *path, mode_t mode);
// Makes the folders above `path`.
int folder_make_parents(const char *path, mode_t mode);
bool write_all(int fd, const void *bytes, size_t length);

#endif
