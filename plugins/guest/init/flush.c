#include "flush.h"
#include "agent.h"
#include "clock.h"
#include "mounts.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 10000 };

static void end(struct agent *agent, int error) {
  struct flush *flush = &agent->flush;
  struct failure failure;
  bool asked = flush->asked;
  flush->asked = false;
  flush->deadline = NEVER;
  if (!asked) return;
  if (error == 0) {
    agent_send_fields(agent, FRAME_RESULT, flush->channel, &(struct writer){ 0 });
    return;
  }
  fail(&failure, error, NO_EXIT, "the disks cannot be flushed: %s", strerror(error));
  agent_send_failure(agent, flush->channel, &failure);
}

void flush_asked(struct agent *agent, uint32_t channel) {
  struct flush *flush = &agent->flush;
  struct failure failure;
  if (!sleep_may(agent, &failure)) {
    agent_send_failure(agent, channel, &failure);
    return;
  }
  // A child that could not be killed in time still waits for its disk.
  if (flush->child > 0) {
    fail(&failure, EBUSY, NO_EXIT, "an earlier flush of the disks has not ended yet");
    agent_send_failure(agent, channel, &failure);
    return;
  }
  flush->asked = true;
  flush->channel = channel;
  flush->deadline = clock_after(clock_ms(), LIMIT_MS);
  // In a fork, since a disk may be slow or hang.
  flush->child = agent_fork(agent);
  if (flush->child == 0) _exit(mounts_sync());
  if (flush->child < 0) {
    flush->child = 0;
    end(agent, errno);
  }
}

void flush_host_lost(struct agent *agent) {
  agent->flush.asked = false;
  if (agent->flush.child > 0) kill(agent->flush.child, SIGKILL);
}

bool flush_child_ended(struct agent *agent, pid_t pid, int wait_status) {
  if (pid <= 0 || pid != agent->flush.child) return false;
  agent->flush.child = 0;
  end(agent, WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : EIO);
  return true;
}

uint64_t flush_update(struct agent *agent, uint64_t now) {
  struct flush *flush = &agent->flush;
  if (flush->deadline > now) return flush->deadline;
  if (flush->child > 0) kill(flush->child, SIGKILL);
  end(agent, ETIMEDOUT);
  return flush->deadline;
}
