// Sets up network and image of a machine in a process of its own, while this program does the rest.
#ifndef ASIDE_H
#define ASIDE_H

#include "failure.h"
#include "identity.h"
#include <stdbool.h>

// What it does must show in the kernel, not in this program's memory.
typedef bool aside_work(const struct network *network, struct failure *failure);

struct aside {
  int report; // -1: it is done
  bool good;
  struct failure failure;
};

// Early: starts the process, which waits until it is needed; on a machine with one processor there is none, and the work is done by whoever asks for it.
void aside_prepare(aside_work *work);

// In a fork of this program that has file systems of its own: the process that waits is not for it.
void aside_forget(void);

// Returns whether another process does it.
bool aside_begin(struct aside *aside, const struct network *network);

// Waits until it is done; to be called once after each begin.
bool aside_end(struct aside *aside, struct failure *failure);

#endif
