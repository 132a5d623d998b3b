// The kinds `sleep` and `wake`: the program is frozen while a memory image is taken, and goes on with the machine's identity of that moment.
#include "sleep.h"
#include "agent.h"
#include "clock.h"
#include "mounts.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 10000, LIMIT_MAX_MS = 600000, DRAIN_MS = 200 };

bool sleep_may(const struct agent *agent, struct failure *failure) {
  if (agent->phase == PHASE_WAITING) return fail(failure, EAGAIN, NO_EXIT, "the guest has no workload yet");
  if (agent->phase == PHASE_STARTING) return fail(failure, EAGAIN, NO_EXIT, "the program is just being started");
  if (agent->phase == PHASE_EXITING || agent->stop_kill_at != NEVER) {
    return fail(failure, ESHUTDOWN, NO_EXIT, "the instance is ending");
  }
  return true;
}

static void answer(struct agent *agent, uint32_t channel) {
  agent_send_fields(agent, FRAME_RESULT, channel, &(struct writer){ 0 });
}

// Lets the program go on. With a reason, a `sleep` under way is refused for it.
static void sleep_end(struct agent *agent, const struct failure *reason) {
  struct sleep *sleep = &agent->sleep;
  if (sleep->step == SLEEP_NOT) return;
  if (sleep->step != SLEEP_DONE && reason != NULL) agent_send_failure(agent, sleep->channel, reason);
  if (sleep->syncer > 0) kill(sleep->syncer, SIGKILL);
  sleep->step = SLEEP_NOT;
  sleep->deadline = NEVER;
  if (agent->phase == PHASE_ASLEEP) agent->phase = PHASE_RUNNING;
  freezer_thaw(&sleep->freezer);
}

void sleep_give_up(struct agent *agent) {
  struct failure failure;
  fail(&failure, ESHUTDOWN, NO_EXIT, "the instance is ending");
  sleep_end(agent, &failure);
}

void sleep_host_lost(struct agent *agent) {
  if (agent->sleep.step != SLEEP_DONE) sleep_end(agent, NULL);
}

void sleep_asked(struct agent *agent, uint32_t channel, const struct fields *fields) {
  struct sleep *sleep = &agent->sleep;
  struct failure failure;
  if (!sleep_may(agent, &failure)) {
    agent_send_failure(agent, channel, &failure);
    return;
  }
  if (sleep->step == SLEEP_DONE) {
    answer(agent, channel);
    return;
  }
  if (sleep->step != SLEEP_NOT) {
    fail(&failure, EALREADY, NO_EXIT, "the instance is falling asleep already");
    agent_send_failure(agent, channel, &failure);
    return;
  }
  uint64_t limit = fields_number(fields, TAG_TIMEOUT_MS, LIMIT_MS);
  sleep->step = SLEEP_FREEZING;
  sleep->channel = channel;
  sleep->sync = fields_number(fields, TAG_SYNC, 1) != 0;
  sleep->deadline = clock_after(clock_ms(), limit > LIMIT_MAX_MS ? LIMIT_MAX_MS : limit);
  if (!freezer_freeze(&sleep->freezer, agent->epoll, agent->cgroups.root, &failure)) sleep_end(agent, &failure);
}

// In a fork, since a disk may be slow or hang.
static bool start_sync(struct agent *agent, struct failure *failure) {
  struct sleep *sleep = &agent->sleep;
  // A child that could not be killed in time still waits for its disk.
  if (sleep->syncer > 0) return fail(failure, EBUSY, NO_EXIT, "an earlier flush of the disks has not ended yet");
  sleep->syncer = agent_fork(agent);
  if (sleep->syncer == 0) _exit(mounts_sync());
  if (sleep->syncer > 0) return true;
  sleep->syncer = 0;
  return fail(failure, errno, NO_EXIT, "the disks cannot be flushed: %s", strerror(errno));
}

static void next_step(struct agent *agent, uint64_t now) {
  struct sleep *sleep = &agent->sleep;
  struct failure failure;
  if (sleep->step == SLEEP_FREEZING && sleep->sync) {
    sleep->step = SLEEP_SYNCING;
    if (!start_sync(agent, &failure)) sleep_end(agent, &failure);
    return;
  }
  sleep->step = SLEEP_DRAINING;
  // The program's earlier output belongs to this machine, not to a clone. A host that does not take it does not prevent the sleep.
  sleep->deadline = now + DRAIN_MS;
}

bool sleep_child_ended(struct agent *agent, pid_t pid, int wait_status) {
  struct sleep *sleep = &agent->sleep;
  struct failure failure;
  if (pid <= 0 || pid != sleep->syncer) return false;
  sleep->syncer = 0;
  if (sleep->step != SLEEP_SYNCING) return true;
  int error = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : EIO;
  if (error == 0) {
    next_step(agent, clock_ms());
    return true;
  }
  fail(&failure, error, NO_EXIT, "the disks cannot be flushed: %s", strerror(error));
  sleep_end(agent, &failure);
  return true;
}

static void time_out(struct agent *agent) {
  struct failure failure;
  const char *what = agent->sleep.step == SLEEP_FREEZING ? "the program could not be frozen" : "the disks could not be flushed";
  fail(&failure, ETIMEDOUT, NO_EXIT, "%s in time", what);
  sleep_end(agent, &failure);
}

uint64_t sleep_update(struct agent *agent, uint64_t now) {
  struct sleep *sleep = &agent->sleep;
  struct failure failure;
  bool frozen;
  if (sleep->step == SLEEP_FREEZING) {
    if (!freezer_is_frozen(&sleep->freezer, &frozen, &failure)) sleep_end(agent, &failure);
    else if (frozen) next_step(agent, now);
  }
  if (sleep->step == SLEEP_DRAINING && (relay_is_idle(&agent->relay) || now >= sleep->deadline)) {
    sleep->step = SLEEP_DONE;
    sleep->deadline = NEVER;
    agent->phase = PHASE_ASLEEP;
    answer(agent, sleep->channel);
  }
  if (sleep->step != SLEEP_NOT && now >= sleep->deadline) time_out(agent);
  return sleep->deadline;
}

bool sleep_identify(struct agent *agent, const struct fields *fields, struct failure *failure) {
  struct identity identity;
  if (!identity_parse(fields, &identity, failure)) return false;
  struct identity merged = agent->workload.identity;
  identity_merge(&merged, &identity);
  if (!agent->platform->identify(&merged, &identity, failure)) return false;
  agent->workload.identity = merged;
  return true;
}

void wake_asked(struct agent *agent, uint32_t channel, const struct fields *fields) {
  struct failure failure = { 0 };
  // It stays asleep: a program that goes on with another machine's address or random numbers is worse than one that waits.
  if (!sleep_may(agent, &failure) || !sleep_identify(agent, fields, &failure)) {
    agent_send_failure(agent, channel, &failure);
    return;
  }
  fail(&failure, ECANCELED, NO_EXIT, "the instance was woken before it was asleep");
  sleep_end(agent, &failure);
  answer(agent, channel);
}
