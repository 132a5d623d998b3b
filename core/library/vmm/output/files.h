// The files that output is appended to, by links that may come to name others.
#ifndef FILES_H
#define FILES_H

#include <stdbool.h>

struct file {
  const char *link;
  int fd;
  int listener; // the socket whose connections go to the file; 0: none
};

// Opens the file that the link names; false with errno set.
bool file_open(struct file *file, const char *link);
// Opens it again in place of the open file, which stays when that fails. 0 or errno.
int file_reopen(struct file *file);

#endif
