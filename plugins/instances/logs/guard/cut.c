#include "cut.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

static void mark(int fd, long long dropped, long long at) {
  char text[128];
  int length = snprintf(text, sizeof text, "[berth: %lld bytes that came before were dropped, since nobody rotated this file]\n", dropped);
  if (pwrite(fd, text, (size_t)length, (off_t)at) < 0) perror("berth-log-guard: a gap cannot be marked");
}

long long cut(int fd, long long limit) {
  struct stat found;
  off_t start = lseek(fd, 0, SEEK_DATA);
  if (fstat(fd, &found) != 0) return 0;
  // A file system may set more blocks aside than have data.
  if (start < 0 || found.st_size - start <= limit) return start < 0 ? 0 : found.st_size - start;
  long long end = (found.st_size - limit / 2) / PAGE_BYTES * PAGE_BYTES;
  // Before the hole is made: whoever reads behind it must find the mark.
  mark(fd, end, end);
  if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, end) == 0) return found.st_size - end;
  if (errno != EOPNOTSUPP) perror("berth-log-guard: a file cannot be cut");
  // Without holes all of the file goes. A VMM appends, so it goes on at the new end; so does the mark.
  if (ftruncate(fd, 0) == 0 && fcntl(fd, F_SETFL, O_APPEND) == 0) mark(fd, found.st_size, 0);
  return 0;
}
