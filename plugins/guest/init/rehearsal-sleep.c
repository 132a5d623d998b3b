// Falling asleep, rehearsed: a process that stands for a program is stopped, the disks are flushed, and it goes on.
#include "rehearsal-sleep.h"
#include "clock.h"
#include "files.h"
#include "freezer.h"
#include "mounts.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUP "sleeper"

enum { LIMIT_MS = 1000 };

static void stop(struct freezer *freezer) {
  struct failure ignored;
  bool frozen = false;
  uint64_t end = clock_ms() + LIMIT_MS;
  while (freezer_is_frozen(freezer, &frozen, &ignored) && !frozen && clock_ms() < end) {
    struct epoll_event event;
    if (epoll_wait(freezer->epoll, &event, 1, LIMIT_MS) != 1) return;
    struct watch *watch = event.data.ptr;
    watch->ready(watch, event.events);
  }
}

static void flush(void) {
  pid_t syncer = fork();
  if (syncer == 0) _exit(mounts_sync());
  if (syncer > 0) waitpid(syncer, NULL, 0);
}

static void sleep_and_wake(int groups, int epoll, int group, pid_t sleeper) {
  struct freezer freezer;
  struct failure ignored;
  char text[16];
  snprintf(text, sizeof text, "%d", sleeper);
  if (file_write(group, "cgroup.procs", text) != 0) return;
  if (freezer_freeze(&freezer, epoll, groups, &ignored)) {
    stop(&freezer);
    flush();
  }
  freezer_thaw(&freezer);
}

void rehearsal_sleep(const struct cgroups *cgroups) {
  int group = cgroups->program < 0 ? -1 : cgroups_open(cgroups->program, GROUP);
  if (group < 0) return;
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  pid_t sleeper = epoll < 0 ? -1 : fork();
  if (sleeper == 0) {
    for (;;) pause();
  }
  if (sleeper > 0) {
    sleep_and_wake(cgroups->program, epoll, group, sleeper);
    kill(sleeper, SIGKILL);
    waitpid(sleeper, NULL, 0);
  }
  if (epoll >= 0) close(epoll);
  close(group);
  cgroups_remove(cgroups->program, GROUP);
}
