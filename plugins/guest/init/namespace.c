// The process namespace of an image's own init, in which commands are started later.
#include "namespace.h"
#include "spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

bool namespace_open(struct namespace *namespace, pid_t init) {
  namespace->own = openat(proc_folder, "self/ns/pid", O_RDONLY | O_CLOEXEC);
  // The kernel always makes it close-on-exec.
  namespace->init = namespace->own < 0 ? -1 : (int)syscall(SYS_pidfd_open, init, 0);
  if (namespace->init >= 0) return true;
  int error = errno;
  if (namespace->own >= 0) close(namespace->own);
  namespace->own = -1;
  errno = error;
  return false;
}

bool namespace_enter(const struct namespace *namespace) {
  return setns(namespace->init, CLONE_NEWPID) == 0;
}

void namespace_leave(const struct namespace *namespace) {
  setns(namespace->own, CLONE_NEWPID);
}

void namespace_see_groups(const struct namespace *namespace) {
  setns(namespace->init, CLONE_NEWCGROUP);
}
