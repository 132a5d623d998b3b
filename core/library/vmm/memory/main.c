// berth-vm-memory: a guest's memory outside of its VMM.
// usage: berth-vm-memory hold BYTES -- VMM ARGUMENT...
//   Becomes a VMM that has so much memory without a name open as descriptor 9.
// usage: berth-vm-memory lend FILE -- VMM ARGUMENT...
//   Becomes a VMM that has the file open for reading as descriptor 9.
// usage: berth-vm-memory copy SOURCE BYTES TARGET
//   Makes TARGET equal to SOURCE, which is a file, or `pid:NUMBER` for the memory that the VMM with that pid holds as above.
// usage: berth-vm-memory changes PID BASE BYTES TARGET
//   Writes the pages that the VMM with that pid, which maps the file BASE privately and stands still, has changed.
// usage: berth-vm-memory fill PID BASE BYTES CHANGES
//   Puts such pages into the mapping of a VMM whose guest does not run yet.
// usage: berth-vm-memory merge CHANGES BYTES TARGET
//   Puts them into TARGET, a copy of the base.
#include "changes.h"
#include "copy.h"
#include "hold.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { USAGE = 2 };

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

static int become(char **command) {
  execvp(command[0], command);
  return fail(command[0]);
}

int main(int argc, char **argv) {
  off_t bytes;
  const char *verb = argc > 1 ? argv[1] : "";
  bool is_start = argc >= 5 && strcmp(argv[3], "--") == 0;
  if (strcmp(verb, "hold") == 0 && is_start && bytes_of(argv[2], &bytes)) return hold(bytes) ? become(argv + 4) : fail("the memory");
  if (strcmp(verb, "lend") == 0 && is_start) return lend(argv[2]) ? become(argv + 4) : fail(argv[2]);
  if (strcmp(verb, "copy") == 0 && argc == 5 && bytes_of(argv[3], &bytes)) return copy_main(argv[2], bytes, argv[4]);
  if (strcmp(verb, "changes") == 0 && argc == 6 && bytes_of(argv[4], &bytes)) return changes_write(argv[2], argv[3], bytes, argv[5]) ? 0 : fail("what has changed");
  if (strcmp(verb, "fill") == 0 && argc == 6 && bytes_of(argv[4], &bytes)) return changes_fill(argv[2], argv[3], bytes, argv[5]) ? 0 : fail(argv[5]);
  if (strcmp(verb, "merge") == 0 && argc == 5 && bytes_of(argv[3], &bytes)) return changes_merge(argv[2], bytes, argv[4]) ? 0 : fail(argv[2]);
  return USAGE;
}
