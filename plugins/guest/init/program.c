// The workload's program: from `run` to its exit code.
#include "program.h"
#include "clock.h"
#include "console.h"
#include "ending.h"
#include "files.h"
#include "log.h"
#include "result.h"
#include "spawn.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static void send_event(struct agent *agent, const char *name) {
  uint8_t bytes[64];
  struct writer event = { .bytes = bytes, .capacity = sizeof bytes };
  write_string(&event, TAG_KIND, name);
  agent_send_fields(agent, FRAME_EVENT, 0, &event);
}

static void refuse(struct agent *agent, uint32_t channel, const struct failure *failure) {
  agent_send_failure(agent, channel, failure);
}

// The program never ran: the guest reports that in every possible way, and ends.
static void give_up(struct agent *agent, const struct failure *failure) {
  log_problem("%s", failure->message);
  refuse(agent, agent->run_channel, failure);
  agent->ending.exit_code = failure->exit_code;
  snprintf(agent->ending.error, sizeof agent->ending.error, "%s", failure->message);
  ending_begin(agent);
}

static void started(struct agent *agent) {
  agent->phase = PHASE_RUNNING;
  if (agent->init != INIT_NONE) agent->platform->init->started();
  agent_send_fields(agent, FRAME_RESULT, agent->run_channel, &(struct writer){ 0 });
  agent->run_channel = 0;
  send_event(agent, "started");
}

static void start_status_readable(struct watch *watch, uint32_t events) {
  struct agent *agent = watch->owner;
  (void)events;
  size_t have = agent->start_failure_length;
  ssize_t got = read(watch->fd, (char *)&agent->start_failure + have, sizeof agent->start_failure - have);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) {
    agent->start_failure_length += (size_t)got;
    if (agent->start_failure_length < sizeof agent->start_failure) return;
  }
  watch_close(agent->epoll, watch);
  if (agent->start_failure_length < sizeof agent->start_failure) {
    if (agent->phase == PHASE_STARTING) started(agent);
    return;
  }
  agent->start_failure.message[sizeof agent->start_failure.message - 1] = 0;
  if (agent->phase == PHASE_STARTING) give_up(agent, &agent->start_failure);
}

static int open_output(struct agent *agent, struct failure *failure) {
  int ours, theirs = -1;
  if (agent->init == INIT_NONE) theirs = relay_open(&agent->relay);
  else if ((errno = console_open(&ours, &theirs)) == 0) relay_take(&agent->relay, ours);
  if (theirs < 0) fail(failure, errno, EXIT_BOOT_FAILED, "nothing to take the program's output: %s", strerror(errno));
  return theirs;
}

static bool start(struct agent *agent, struct failure *failure) {
  const struct workload *workload = &agent->workload;
  int output = open_output(agent, failure);
  if (output < 0) return false;
  struct spawn spawn = {
    .argv = workload->argv, .env = workload->env, .cwd = workload->cwd, .user = workload->user,
    .hostname = workload->identity.hostname, .make_cwd = true, .input = -1, .output = output, .error = output,
    .cgroup = agent->cgroups.program,
  };
  if (agent->init != INIT_NONE) {
    cgroups_delegate(&agent->cgroups);
    spawn.init_root = agent->platform->init->make_root;
    spawn.input = output;
  }
  int status;
  agent->oom_kills_before = cgroups_oom_kills(&agent->cgroups);
  agent->program = spawn_start(&spawn, &status);
  int error = errno;
  // A terminal that nobody has open reports a hang-up all the time, and an init may close it and open it again.
  if (agent->init == INIT_NONE) close(output);
  if (agent->program > 0 && agent->init != INIT_NONE && !namespace_open(&agent->namespace, agent->program)) {
    error = errno;
    kill(agent->program, SIGKILL);
    close(status);
    agent->program = -1;
  }
  if (agent->program < 0) {
    agent->program = 0;
    return fail(failure, error, EXIT_BOOT_FAILED, "the program cannot be started: %s", strerror(error));
  }
  watch_init(&agent->start_status, status, start_status_readable, agent);
  watch_want(agent->epoll, &agent->start_status, EPOLLIN);
  return true;
}

static bool take_workload(struct agent *agent, const struct frame *frame, struct failure *failure) {
  struct workload *workload = &agent->workload;
  if (!workload_parse(workload, frame->payload, frame->length, failure)) return false;
  if (!workload->trusts) return true;
  workload->trust = &agent->trust;
  if (trust_is_whole(&agent->trust, workload->trust_length, failure)) return true;
  workload_free(workload);
  trust_free(&agent->trust);
  return false;
}

void program_run(struct agent *agent, const struct frame *frame) {
  struct failure failure = { 0 };
  if (agent->phase != PHASE_WAITING) {
    fail(&failure, EALREADY, EXIT_BOOT_FAILED, "this guest has its workload already");
    refuse(agent, frame->channel, &failure);
    return;
  }
  if (!rehearsal_is_over(agent, &failure)) {
    refuse(agent, frame->channel, &failure);
    return;
  }
  agent->run_channel = frame->channel;
  // The host has no other workload for this guest, so one that cannot be taken must not leave it waiting.
  if (!take_workload(agent, frame, &failure)) {
    give_up(agent, &failure);
    return;
  }
  agent->has_workload = true;
  agent->phase = PHASE_STARTING;
  bool good = agent->platform->prepare(&agent->workload, &agent->cgroups, &failure);
  // Trust that was placed needs no memory any more.
  agent->workload.trust = NULL;
  trust_free(&agent->trust);
  if (good && agent->platform->init != NULL) agent->init = init_system_of(&agent->workload);
  if (!good || !start(agent, &failure)) give_up(agent, &failure);
}

void program_exited(struct agent *agent, int wait_status) {
  // A program that ends at once is noticed here before its start: handle the start first, for the order of RESULT and events.
  if (agent->start_status.fd >= 0) start_status_readable(&agent->start_status, EPOLLIN);
  if (agent->start_status.fd >= 0) start_status_readable(&agent->start_status, EPOLLIN);
  agent->program = 0;
  agent->stop_kill_at = NEVER;
  if (agent->phase == PHASE_EXITING) return;
  struct ending *ending = &agent->ending;
  if (agent->init != INIT_NONE && init_system_switched_off(wait_status)) wait_status = 0;
  ending->exit_code = exit_code_of(wait_status, &ending->signal);
  // As certain as possible: a process of the program's group was killed for want of memory, and the program ended by SIGKILL.
  ending->oom = ending->exit_code == 128 + SIGKILL && cgroups_oom_kills(&agent->cgroups) > agent->oom_kills_before;
  ending_begin(agent);
}

void program_stop(struct agent *agent, uint64_t grace_ms, uint64_t signal) {
  if (agent->phase == PHASE_EXITING) return;
  sleep_give_up(agent);
  if (agent->program == 0) {
    ending_begin(agent);
    return;
  }
  if (grace_ms > 0 && signal > 0 && signal < NSIG) kill(agent->program, init_system_stop_signal(agent->init, (int)signal));
  agent->stop_kill_at = clock_first(agent->stop_kill_at, clock_after(clock_ms(), grace_ms));
}

uint64_t program_update(struct agent *agent, uint64_t now) {
  if (agent->program == 0 || now < agent->stop_kill_at) return agent->stop_kill_at;
  agent->stop_kill_at = NEVER;
  kill(agent->program, SIGKILL);
  return NEVER;
}
