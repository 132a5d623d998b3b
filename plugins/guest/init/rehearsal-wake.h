// The kind `rehearse` while asleep: a wake without its end, and a command beside the program, which stays frozen.
#ifndef REHEARSAL_WAKE_H
#define REHEARSAL_WAKE_H

#include "channel.h"
#include "failure.h"
#include "fields.h"
#include <stdbool.h>
#include <stdint.h>

struct agent;

// The command's end is the RESULT. `channel` is a free one; NULL: there is none.
bool rehearsal_wake(struct agent *agent, struct channel *channel, uint32_t id, const struct fields *asked, struct failure *failure);

#endif
