#include "whole-io.h"
#include <errno.h>
#include <unistd.h>

bool read_all(int fd, char *to, size_t size, off_t at) {
  for (size_t done = 0; done < size;) {
    ssize_t got = pread(fd, to + done, size - done, at + (off_t)done);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = EIO;
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

bool write_all(int fd, const char *from, size_t size, off_t at) {
  for (size_t done = 0; done < size;) {
    ssize_t put = pwrite(fd, from + done, size - done, at + (off_t)done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    done += (size_t)put;
  }
  return true;
}
