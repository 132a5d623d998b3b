// A process that does nothing, started while the host thinks of its answer.
//
// An emulator that has just loaded a memory image translates each piece of code when it comes to it. What comes next, after a `run` or a `wake`, is the start of a process: so
// one is started before, and another processor translates what starting and ending takes, while this program waits for the host or prepares what it was told to run.
#include "warm-up.h"
#include "processors.h"
#include "spawn.h"
#include <fcntl.h>
#include <grp.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STATUS = 3 };

static int self = -1;

void warm_up_prepare(void) {
  if (processors_are_several()) self = open("/proc/self/exe", O_PATH | O_CLOEXEC);
}

void warm_up(void) {
  if (self < 0 || fork() != 0) return;
  static char *const argv[] = { "init", "scene", NULL }, *const none[] = { NULL };
  struct rlimit files;
  // As spawn.c does it.
  setsid();
  child_descriptors(0, 1, 2, self);
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) setrlimit(RLIMIT_NOFILE, &files);
  if (chdir("/") == 0 && setgroups(0, NULL) == 0 && setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0) {
    child_signals();
    syscall(SYS_execveat, STATUS, "", argv, none, AT_EMPTY_PATH);
  }
  _exit(1);
}
