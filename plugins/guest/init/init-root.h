// The root as an image's own init expects it: https://systemd.io/CONTAINER_INTERFACE, which other inits are content with.
#ifndef INIT_ROOT_H
#define INIT_ROOT_H

#include "failure.h"
#include <stdbool.h>

// In the child that is about to become the init, process 1 of its namespace already.
bool init_root_make(struct failure *failure);

#endif
