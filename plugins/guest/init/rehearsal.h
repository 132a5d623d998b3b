// The kind `rehearse`: one start of a program on the current disks, isolated from everything else, which leaves no trace.
#ifndef REHEARSAL_H
#define REHEARSAL_H

#include "cgroup.h"
#include "failure.h"
#include "fields.h"
#include "workload.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct agent;

// Where and how a real guest rehearses.
struct rehearsal_place {
  uint64_t namespaces; // CLONE_NEW…: what the actors do to them ends with them
  const char *program; // found after `prepare`; it ends with 0
  bool (*prepare)(const struct workload *workload, struct cgroups *cgroups, struct failure *failure);
  // In the actor, when the program has ended: NULL if nothing is to be done.
  void (*leave)(void);
  // When all actors are gone: restores the machine to its previous state.
  bool (*clear)(struct failure *failure);
};

struct rehearsal {
  pid_t director; // 0: none is under way
  int status;
  uint32_t channel; // the `rehearse` that waits for its RESULT; 0: nobody does any more
};

void rehearsal_asked(struct agent *agent, uint32_t channel, const struct fields *fields);
bool rehearsal_child_ended(struct agent *agent, pid_t pid, int wait_status);
// True when no rehearsal is under way, which would disturb a `run`; otherwise sets `failure`.
bool rehearsal_is_over(const struct agent *agent, struct failure *failure);

#endif
