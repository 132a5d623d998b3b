// One program that is to be started.
#pragma once
#include "frame.h"
#include <sys/types.h>

// The texts of a FRAME_START.
struct plan {
  char **words;
  char **variables;
  char **files;
  char *log; // NULL: its output goes to the server
  bool has_input;
  const uint8_t *input;
  size_t input_length;
};

// False for nonsense. All of the plan but its lists is in the payload, which must outlive it.
bool plan_read(struct plan *plan, const uint8_t *payload, size_t length);
void plan_free(struct plan *plan);
// Returns the pid once the program runs, or -1 with errno set. `out` are the ends to read its output and errors from; -1 when it has a log.
pid_t launch(const struct plan *plan, int out[2]);
