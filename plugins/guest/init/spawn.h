// Starts a command of the workload: session, terminal, user, folder, environment, and the search for its file.
#ifndef SPAWN_H
#define SPAWN_H

#include "failure.h"
#include "namespace.h"
#include <stdbool.h>
#include <sys/types.h>

struct spawn {
  char *const *argv;
  char *const *env;      // the workload's
  char *const *more_env; // overrides; may be NULL
  const char *cwd;
  const char *user;
  const char *hostname; // may be empty
  bool make_cwd; // as docker makes a missing WORKDIR
  bool tty;      // the three descriptors are a terminal, to become the controlling one
  int input;     // -1: /dev/null
  int output;
  int error;
  int cgroup; // folder of the cgroup to join, or -1
  // For an init: it becomes process 1 of a new process namespace, and prepares the root. NULL: an ordinary command.
  bool (*init_root)(struct failure *failure);
  const struct namespace *namespace; // to be started in; NULL: this program's
};

// Returns the process, or -1 with errno. `status` becomes a non-blocking descriptor that reads a whole `struct failure` when the
// command could not be started, and then end-of-file, or end-of-file at once when it was.
pid_t spawn_start(const struct spawn *spawn, int *status);

// In a fresh child: sets default signals with all of them unblocked, and closes all descriptors but 0, 1, 2 and `status` as 3.
void child_signals(void);
void child_descriptors(int input, int output, int error, int status);

// The machine's /proc, whatever the guest mounts later; -1 when there is none.
extern int proc_folder;

#endif
