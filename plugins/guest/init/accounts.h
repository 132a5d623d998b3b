// Turns an image's USER (`name`, `uid`, `name:group`, `uid:gid`) into numbers, from the image's own /etc/passwd and /etc/group.
#ifndef ACCOUNTS_H
#define ACCOUNTS_H

#include "failure.h"
#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum { ACCOUNT_GROUPS_MAX = 1024 };

struct account {
  uid_t uid;
  gid_t gid;
  gid_t groups[ACCOUNT_GROUPS_MAX]; // the first is gid itself
  size_t group_count;
  char home[PATH_MAX];
};

// Pure: the two files as text (NULL for a missing one). An empty or NULL `spec` is uid 0.
bool account_resolve(const char *spec, const char *passwd, const char *group, struct account *account,
                     struct failure *failure);
// The same with the files below the current root.
bool account_load(const char *spec, struct account *account, struct failure *failure);

#endif
