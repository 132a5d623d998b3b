// The process that is left behind: reads the output of VMM and guest, and appends it to their files.
#ifndef KEEP_H
#define KEEP_H

#include "files.h"

enum { KEEPER_FILES = 4 };

struct keeper {
  int control;
  int console; // the VMM's own output, which is written to the first file
  struct file files[KEEPER_FILES];
  int file_count;
};

// Returns the exit code, once the VMM has ended and its output is written.
int keep(struct keeper *keeper);

#endif
