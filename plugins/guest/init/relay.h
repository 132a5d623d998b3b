// Carries the program's output from its pipe to the output port; a slow port holds the program back.
#ifndef RELAY_H
#define RELAY_H

#include "queue.h"
#include "watch.h"
#include <stdbool.h>

struct relay {
  int epoll;
  struct watch source; // -1: not open yet, or at its end
  struct watch port;   // -1: the host gave none, and output is thrown away
  bool port_writable;
  struct queue queue;
};

bool relay_init(struct relay *relay, int epoll, int port);
// Makes the pipe; returns the end for the program, or -1.
int relay_open(struct relay *relay);
// True when there is more to do at once.
bool relay_pump(struct relay *relay);
// Everything that was written has been handed to the port, and nothing can come any more.
bool relay_is_drained(const struct relay *relay);
// Everything that has been written so far has been handed to the port.
bool relay_is_idle(const struct relay *relay);
// Takes what is in the pipe now for all, though somebody may still hold it.
void relay_end(struct relay *relay);

#endif
