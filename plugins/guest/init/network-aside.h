// Configures the network while this program does something else.
#ifndef NETWORK_ASIDE_H
#define NETWORK_ASIDE_H

#include "failure.h"
#include "identity.h"
#include <stdbool.h>
#include <sys/types.h>

struct network_aside {
  pid_t child; // 0: it is done
  int report;
  bool good;
  struct failure failure;
};

void network_begin(struct network_aside *aside, const struct network *network);

// Waits for it; to be called once after each begin.
bool network_end(struct network_aside *aside, struct failure *failure);

#endif
