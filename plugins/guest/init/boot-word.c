// Words for this program that the VMM's driver has put on the kernel's command line.
#include "boot-word.h"
#include "files.h"
#include "spawn.h"
#include <stdlib.h>
#include <string.h>

enum { COMMAND_LINE_MAX = 65536 };

bool boot_word(const char *word) {
  // Relative to the open folder: the guest may mount anything over /proc.
  char *line = file_read_at(proc_folder, "cmdline", COMMAND_LINE_MAX, NULL);
  bool found = false;
  char *rest = NULL;
  for (char *part = line == NULL ? NULL : strtok_r(line, " \n", &rest); part != NULL; part = strtok_r(NULL, " \n", &rest)) {
    if (strcmp(part, word) == 0) found = true;
  }
  free(line);
  return found;
}
