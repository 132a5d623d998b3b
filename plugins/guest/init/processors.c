#include "processors.h"
#include <sched.h>

// By a system call of its own: the C library would read files for it, which costs a fresh VMM more.
bool processors_are_several(void) {
  cpu_set_t usable;
  return sched_getaffinity(0, sizeof usable, &usable) == 0 && CPU_COUNT(&usable) > 1;
}
