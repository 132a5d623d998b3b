// The files that output is appended to, by links that may come to name others.
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int open_link(const char *link) {
  // Opens no pipe and no device that would block: nothing may hold the VMM up.
  return open(link, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

bool file_open(struct file *file, const char *link) {
  file->link = link;
  file->fd = open_link(link);
  return file->fd >= 0;
}

int file_reopen(struct file *file) {
  int fd = open_link(file->link);
  if (fd < 0) return errno;
  close(file->fd);
  file->fd = fd;
  return 0;
}
