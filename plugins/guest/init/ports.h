// Finds the virtio-serial ports by name and opens them.
#ifndef PORTS_H
#define PORTS_H

#include <stdbool.h>

struct ports {
  int agent; // each -1 until found
  int output;
  int report;
};

// Waits a bounded time for all three. False without the agent's port; the other two, for the program's output and the report, are optional.
bool ports_open(struct ports *ports);
// Closing makes the kernel wait until the VMM has taken all bytes: otherwise power-off could come before the last ones.
void ports_close(struct ports *ports);

#endif
