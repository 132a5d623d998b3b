// In a process of its own where there is a processor for it: an emulator translates what both parts take of the kernel at the same time then.
#include "aside.h"
#include "protocol.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

static bool has_processors(void) {
  cpu_set_t usable;
  return sched_getaffinity(0, sizeof usable, &usable) == 0 && CPU_COUNT(&usable) > 1;
}

// The child, or -1.
static pid_t start(struct aside *aside, bool (*work)(const struct workload *, struct failure *), const struct workload *workload) {
  int ends[2];
  if (!has_processors() || pipe2(ends, O_CLOEXEC) < 0) return -1;
  pid_t child = fork();
  if (child == 0) {
    struct failure failure = { 0 };
    _exit(work(workload, &failure) || write(ends[1], &failure, sizeof failure) == sizeof failure ? 0 : 1);
  }
  close(ends[1]);
  aside->report = ends[0];
  if (child < 0) close(ends[0]);
  return child;
}

bool aside_begin(struct aside *aside, bool (*work)(const struct workload *, struct failure *), const struct workload *workload) {
  *aside = (struct aside){ 0 };
  pid_t child = start(aside, work, workload);
  if (child > 0) aside->child = child;
  else aside->good = work(workload, &aside->failure);
  return child > 0;
}

static bool hear(struct aside *aside) {
  size_t have = 0;
  ssize_t got;
  do {
    got = read(aside->report, (char *)&aside->failure + have, sizeof aside->failure - have);
    if (got > 0) have += (size_t)got;
  } while (got > 0 || (got < 0 && errno == EINTR));
  close(aside->report);
  int status = 0;
  while (waitpid(aside->child, &status, 0) < 0 && errno == EINTR);
  aside->failure.message[sizeof aside->failure.message - 1] = 0;
  if (have == sizeof aside->failure) return false;
  return (WIFEXITED(status) && WEXITSTATUS(status) == 0) || fail(&aside->failure, ECHILD, EXIT_BOOT_FAILED, "a process that prepares the machine ended unexpectedly");
}

bool aside_end(struct aside *aside, struct failure *failure) {
  if (aside->child > 0) aside->good = hear(aside);
  aside->child = 0;
  if (!aside->good) *failure = aside->failure;
  return aside->good;
}
