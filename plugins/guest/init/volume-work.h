// The kinds `mount` and `unmount`: volumes that come and go while the program runs, one at a time, each in a fork.
#ifndef VOLUME_WORK_H
#define VOLUME_WORK_H

#include "failure.h"
#include "fields.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct agent;
struct kept_volume;
struct volume_word;

struct volume_work {
  pid_t worker;             // 0: none is under way
  uint32_t channel;         // waits for its RESULT; 0: nobody does any more
  bool unmounting;
  struct kept_volume *kept; // the volume that it is about
  struct volume_word *word; // what the worker says in the end: memory that it shares
};

void volume_mount_asked(struct agent *agent, uint32_t channel, const struct fields *fields);
void volume_unmount_asked(struct agent *agent, uint32_t channel, const struct fields *fields);
bool volume_child_ended(struct agent *agent, pid_t pid, int wait_status);

#endif
