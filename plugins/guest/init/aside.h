// Does a part of a workload's preparation in a process of its own while this program does another.
#ifndef ASIDE_H
#define ASIDE_H

#include "failure.h"
#include "workload.h"
#include <stdbool.h>
#include <sys/types.h>

struct aside {
  pid_t child; // 0: it is done
  int report;
  bool good;
  struct failure failure;
};

// What `work` does must show in the kernel, not in this program's memory. Returns whether that is another process'.
bool aside_begin(struct aside *aside, bool (*work)(const struct workload *, struct failure *), const struct workload *workload);

// Waits for it; to be called once after each begin.
bool aside_end(struct aside *aside, struct failure *failure);

#endif
