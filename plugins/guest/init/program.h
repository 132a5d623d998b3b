// The workload's program: from `run` to its exit code.
#ifndef PROGRAM_H
#define PROGRAM_H

#include "agent.h"

void program_run(struct agent *agent, const struct frame *frame);
// The kind `shutdown`.
void program_stop(struct agent *agent, uint64_t grace_ms, uint64_t signal);
void program_exited(struct agent *agent, int wait_status);
// Sends the signal that is due during a stop; returns when to look again.
uint64_t program_update(struct agent *agent, uint64_t now);

#endif
