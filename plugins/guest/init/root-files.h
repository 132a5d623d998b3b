// Files below a root that is not to be trusted: no link leads out of it, nothing that is mounted in it is touched, and nothing blocks.
#ifndef ROOT_FILES_H
#define ROOT_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

// Where a path of the root ends, with all links followed: an open folder, and a name in it that is no link.
struct place {
  int folder;
  char name[NAME_MAX + 1];
  bool exists;
  struct stat facts; // of what is there, when it exists
};

// Paths are absolute, as programs in the root say them. With `make`, missing folders are made. A descriptor, or -1 with errno.
int root_open_folder(int root, const char *path, bool make);
// Goes to the end of the path; the folder must exist. 0 or errno. The caller closes `folder`.
int root_find(int root, const char *path, struct place *place);
// What is there and what its name is, without following a link at the end. 0 or errno.
int place_in(int folder, const char *name, struct place *place);
// Reads a regular file of at most `limit` bytes into memory that the caller frees, with a NUL behind. NULL with errno.
char *place_read(const struct place *place, size_t limit, size_t *length);
// Reads the last bytes of a regular file, at most `length` of them; how many, or -1.
ssize_t place_read_end(const struct place *place, char *into, size_t length);
// Puts a file in the place of what is there, with its owner and mode if it is a file, else root's and 0644. With `durable` a power cut
// leaves either the one or the other. 0 or errno.
int place_write(struct place *place, const char *text, size_t length, bool durable);
// The same with a symbolic link; one that leads there already is left alone.
int place_link(const struct place *place, const char *target);

#endif
