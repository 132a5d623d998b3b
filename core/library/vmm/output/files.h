// The files that output is appended to, by links that may come to name others.
#ifndef FILES_H
#define FILES_H

#include <stdbool.h>

struct file {
  const char *link;
  int fd;
  int listener; // whose connections go to it; 0: none
};

// Opens what the link names; false with errno set.
bool file_open(struct file *file, const char *link);
// The same once more, in the place of what is open; the old file stays when that fails. 0 or errno.
int file_reopen(struct file *file);

#endif
