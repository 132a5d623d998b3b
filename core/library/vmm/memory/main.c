// berth-vm-memory: a guest's memory outside of its VMM.
// usage: berth-vm-memory hold BYTES -- VMM ARGUMENT...
//   Becomes a VMM that has so much memory without a name open as descriptor 9.
// usage: berth-vm-memory copy SOURCE BYTES TARGET
//   Makes TARGET equal to SOURCE, which is a file, or `pid:NUMBER` for the memory that the VMM with that pid holds as above.
#include "copy.h"
#include "hold.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what) {
  dprintf(STDERR_FILENO, "berth-vm-memory: %s: %s\n", what, strerror(errno));
  return 126;
}

static bool bytes_of(const char *word, off_t *bytes) {
  char *end;
  errno = 0;
  *bytes = strtoll(word, &end, 10);
  return errno == 0 && *bytes > 0 && *end == 0;
}

static int copy_main(const char *source, off_t bytes, const char *target) {
  int from = strncmp(source, "pid:", 4) == 0 ? held_by(source + 4) : copy_source(source);
  if (from < 0) return fail(source);
  int to = copy_target(target, bytes);
  if (to < 0) return fail(target);
  return copy_all(from, to, bytes) ? 0 : fail(target);
}

int main(int argc, char **argv) {
  off_t bytes;
  if (argc < 5 || !bytes_of(argv[strcmp(argv[1], "copy") == 0 ? 3 : 2], &bytes)) return 2;
  if (strcmp(argv[1], "copy") == 0) return argc == 5 ? copy_main(argv[2], bytes, argv[4]) : 2;
  if (strcmp(argv[1], "hold") != 0 || strcmp(argv[3], "--") != 0) return 2;
  if (!hold(bytes)) return fail("the memory");
  execvp(argv[4], argv + 4);
  return fail(argv[4]);
}
