// Stops every process of the program at once, and resumes them, unnoticed by them: the kernel's freezer of control groups.
#ifndef FREEZER_H
#define FREEZER_H

#include "failure.h"
#include "watch.h"
#include <stdbool.h>
#include <stddef.h>

enum { FREEZER_GROUPS_MAX = 64, FREEZER_NAME_SIZE = 256 };

struct freezer_group {
  char name[FREEZER_NAME_SIZE];
  int folder;
  bool frozen;
  struct watch events; // an event when the kernel has frozen or thawed it
};

struct freezer {
  int epoll;
  int root; // the folder of all groups
  size_t count;
  struct freezer_group groups[FREEZER_GROUPS_MAX];
};

// Asks the kernel to freeze all groups below `root` but those that the guest itself has frozen already.
bool freezer_freeze(struct freezer *freezer, int epoll, int root, struct failure *failure);
// Whether all of them are frozen; also adds groups that were made since. The loop wakes up when it is worth another call.
bool freezer_is_frozen(struct freezer *freezer, bool *frozen, struct failure *failure);
void freezer_thaw(struct freezer *freezer);

#endif
