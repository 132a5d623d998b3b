// From the program's end to the power switch: kill what still runs, drain the output, report, tell the host.
#ifndef ENDING_H
#define ENDING_H

#include "agent.h"

// `agent->ending` holds the reason. Only the first call has an effect.
void ending_begin(struct agent *agent);
// Takes the next step when it is due; returns when to look again.
uint64_t ending_update(struct agent *agent, uint64_t now);

#endif
