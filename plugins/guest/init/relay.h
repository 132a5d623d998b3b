// Carries the program's output from its pipe to the output port; a slow port holds the program back.
#ifndef RELAY_H
#define RELAY_H

#include "acknowledged.h"
#include "queue.h"
#include "watch.h"
#include <stdbool.h>

struct relay {
  int epoll;
  bool terminal; // the source is one: its output has no end before `relay_end`, and lines end as a terminal wants them
  bool returned; // a carriage return that may belong to the end of a line
  struct watch source; // -1: not open yet, or at its end
  struct watch port;   // -1: the host gave none, and output is thrown away, unless it can be opened
  bool port_writable;
  // For a port that is a connection: opens it when there is output, and again when it breaks. NULL for other ports.
  int (*open)(void);
  uint64_t retry_at;
  size_t sent; // of the queue, and not acknowledged yet
  struct acknowledged acknowledged;
  struct queue queue;
};

// `open` opens the port again, or returns -1; bytes through such a port are acknowledged. NULL: the port stays open.
bool relay_init(struct relay *relay, int epoll, int port, int (*open)(void));
// Makes the pipe; returns the end for the program, or -1.
int relay_open(struct relay *relay);
// Reads a terminal instead of a pipe. In the port's output, a line ends with a newline alone.
void relay_take(struct relay *relay, int terminal);
// Returns true when there is more to do at once.
bool relay_pump(struct relay *relay);
// When to pump again even without an event.
uint64_t relay_due(const struct relay *relay);
// Whether everything that was written has been handed to the port, and nothing more can come.
bool relay_is_drained(const struct relay *relay);
// Whether everything that has been written so far has been handed to the port.
bool relay_is_idle(const struct relay *relay);
// Treats what is in the pipe now as all output, though a process may still hold the pipe.
void relay_end(struct relay *relay);

#endif
