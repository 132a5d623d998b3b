// Files below an untrusted root: no link leads out of it, nothing that is mounted in it is touched, and nothing blocks.
#ifndef ROOT_FILES_H
#define ROOT_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

// The end of a path in the root, with all links followed: an open folder, and a name in it that is no link.
struct place {
  int folder;
  char name[NAME_MAX + 1];
  bool exists;
  struct stat facts; // of what is there, when it exists
};

// Paths are absolute, as seen by programs in the root. With `make`, missing folders are made. A descriptor, or -1 with errno.
int root_open_folder(int root, const char *path, bool make);
// Goes to the end of the path; the folder must exist. 0 or errno. The caller closes `folder`.
int root_find(int root, const char *path, struct place *place);
// Looks at a name in a folder, without following a link at the end. 0 or errno.
int place_in(int folder, const char *name, struct place *place);
// Reads a regular file of at most `limit` bytes into memory that the caller frees, with a NUL behind. NULL with errno.
char *place_read(const struct place *place, size_t limit, size_t *length);
// Reads the last bytes of a regular file, at most `length` of them; returns how many, or -1.
ssize_t place_read_end(const struct place *place, char *into, size_t length);
// Replaces the file there, keeping its owner and mode, or makes one of root with mode 0644. With `durable` a power cut
// leaves either the old or the new content. 0 or errno.
int place_write(struct place *place, const char *text, size_t length, bool durable);
// The same with a symbolic link; a link that already has this target is left alone.
int place_link(const struct place *place, const char *target);

#endif
