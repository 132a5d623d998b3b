// The kind `flush`: writes data to the disks while the program runs on, so that a later `sleep` has little left to write.
#ifndef FLUSH_H
#define FLUSH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct agent;

struct flush {
  pid_t child;
  bool asked; // somebody waits for its RESULT
  uint32_t channel;
  uint64_t deadline;
};

void flush_asked(struct agent *agent, uint32_t channel);
// The host is away: nobody waits any more.
void flush_host_lost(struct agent *agent);
bool flush_child_ended(struct agent *agent, pid_t pid, int wait_status);
// Gives up after its time limit; returns when to look again.
uint64_t flush_update(struct agent *agent, uint64_t now);

#endif
