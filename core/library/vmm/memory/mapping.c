#include "mapping.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int open_of(const char *pid, const char *name, int flags) {
  char path[64];
  if (pid[strspn(pid, "0123456789")] != 0 || strlen(pid) > 10) {
    errno = EINVAL;
    return -1;
  }
  snprintf(path, sizeof path, "/proc/%s/%s", pid, name);
  return open(path, flags | O_CLOEXEC);
}

bool mapping_of(const char *pid, const char *file, off_t bytes, uintptr_t *start) {
  struct stat found;
  if (stat(file, &found) < 0) return false;
  int fd = open_of(pid, "maps", O_RDONLY);
  if (fd < 0) return false;
  FILE *maps = fdopen(fd, "r");
  char line[4352];
  // A mapping can be in several pieces, since advice to the kernel may be about a part of it.
  uintptr_t covered = 0;
  while (maps != NULL && covered < (uintptr_t)bytes && fgets(line, sizeof line, maps) != NULL) {
    uintptr_t from, to;
    uint64_t offset, inode;
    char rights[5];
    // Not the device: some file systems show another one here than to stat.
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNx64 " %*x:%*x %" SCNu64, &from, &to, rights, &offset, &inode) != 5) continue;
    if (inode != (uint64_t)found.st_ino || rights[3] != 'p' || rights[1] != 'w') continue;
    if (offset == 0) {
      *start = from;
      covered = 0;
    }
    if (offset != covered || from - *start != covered) continue;
    covered += to - from;
  }
  if (maps != NULL) fclose(maps);
  errno = ENOENT;
  return covered == (uintptr_t)bytes;
}
