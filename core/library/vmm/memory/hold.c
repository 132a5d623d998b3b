#include "hold.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

enum { HELD_FD = 9 };

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

static bool keep(int fd) {
  if (fd == HELD_FD) return true;
  if (dup2(fd, HELD_FD) < 0) return false;
  close(fd);
  return true;
}

bool hold(off_t bytes) {
  int fd = memfd_create("guest", MFD_NOEXEC_SEAL);
  // Linux before 6.3 does not know the flag; since then a host may refuse memory without it.
  if (fd < 0 && errno == EINVAL) fd = memfd_create("guest", 0);
  return fd >= 0 && ftruncate(fd, bytes) == 0 && keep(fd);
}

bool lend(const char *path) {
  int fd = open(path, O_RDONLY | O_NOFOLLOW);
  return fd >= 0 && keep(fd);
}

// A VMM can put any file at this descriptor number, even one that it may not open itself. A process with more rights must open nothing but memory without a name: a named file belongs to somebody else.
static bool is_memory(int fd) {
  struct stat found;
  struct statfs system;
  if (fstat(fd, &found) < 0 || fstatfs(fd, &system) < 0) return false;
  errno = EBADF;
  return S_ISREG(found.st_mode) && found.st_nlink == 0 && system.f_type == TMPFS_MAGIC;
}

int held_by(const char *pid) {
  char path[64];
  if (pid[strspn(pid, "0123456789")] != 0 || strlen(pid) > 10) {
    errno = EINVAL;
    return -1;
  }
  snprintf(path, sizeof path, "/proc/%s/fd/%d", pid, HELD_FD);
  // O_PATH does not open the file itself.
  int place = open(path, O_PATH | O_CLOEXEC);
  if (place < 0) return -1;
  int fd = -1;
  if (is_memory(place)) {
    snprintf(path, sizeof path, "/proc/self/fd/%d", place);
    fd = open(path, O_RDONLY | O_CLOEXEC);
  }
  int error = errno;
  close(place);
  errno = error;
  return fd;
}
