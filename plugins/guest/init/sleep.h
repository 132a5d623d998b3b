// The kinds `sleep` and `wake`: the program is frozen while a memory image is taken, and goes on with the machine's identity of that moment.
#ifndef SLEEP_H
#define SLEEP_H

#include "failure.h"
#include "fields.h"
#include "freezer.h"
#include <stdint.h>
#include <sys/types.h>

struct agent;

enum sleep_step { SLEEP_NOT, SLEEP_FREEZING, SLEEP_SYNCING, SLEEP_DRAINING, SLEEP_DONE };

struct sleep {
  enum sleep_step step;
  uint32_t channel; // the `sleep` that waits for its RESULT
  bool sync;
  pid_t syncer;
  uint64_t deadline;
  struct freezer freezer;
};

// Whether either can be done now; if not, `failure` says why.
bool sleep_may(const struct agent *agent, struct failure *failure);
void sleep_asked(struct agent *agent, uint32_t channel, const struct fields *fields);
void wake_asked(struct agent *agent, uint32_t channel, const struct fields *fields);
// Gives the machine what the fields of a `wake` say.
bool sleep_identify(struct agent *agent, const struct fields *fields, struct failure *failure);
// The instance ends: the program goes on without a `wake`, since a frozen process receives no signal but SIGKILL.
void sleep_give_up(struct agent *agent);
// The host is away: a sleep under way ends; after its answer it stays in force.
void sleep_host_lost(struct agent *agent);
bool sleep_child_ended(struct agent *agent, pid_t pid, int wait_status);
// Takes the next step when it is due; returns when to look again.
uint64_t sleep_update(struct agent *agent, uint64_t now);

#endif
