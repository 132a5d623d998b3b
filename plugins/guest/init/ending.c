// From the program's end to the power switch: kill what still runs, drain the output, report, tell the host.
#include "ending.h"
#include "clock.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

enum { TERM_MS = 200, KILL_MS = 2000, DRAIN_MS = 10000, REPORT_MS = 2000, FLUSH_MS = 500 };

static void signal_all(struct agent *agent, int number) {
  if (agent->platform->is_init) {
    kill(-1, number); // everything but this process
    return;
  }
  if (agent->program > 0) kill(-agent->program, number);
  for (int i = 0; i < CHANNEL_MAX; i++) {
    struct channel *channel = &agent->channels[i];
    if (channel->used && !channel->exited) kill(channel->kind == CHANNEL_COMMAND ? -channel->pid : channel->pid, number);
  }
}

static bool children_left(void) {
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void step(struct agent *agent, enum end_step next, uint64_t limit_ms) {
  agent->end_step = next;
  agent->end_deadline = clock_ms() + limit_ms;
}

void ending_begin(struct agent *agent) {
  if (agent->phase == PHASE_EXITING) return;
  sleep_give_up(agent);
  agent->phase = PHASE_EXITING;
  if (children_left()) signal_all(agent, SIGTERM);
  step(agent, END_TERM, TERM_MS);
}

static void tell_host(struct agent *agent) {
  if (agent->platform->open_report == NULL) report_write(agent->report_port, &agent->ending, REPORT_MS);
  else report_hand_over(agent->platform->open_report, &agent->ending, REPORT_MS);
  uint8_t bytes[1024];
  struct writer event = { .bytes = bytes, .capacity = sizeof bytes };
  write_string(&event, TAG_KIND, "exited");
  write_number(&event, TAG_EXIT_CODE, (uint64_t)agent->ending.exit_code);
  write_number(&event, TAG_SIGNAL, (uint64_t)agent->ending.signal);
  write_number(&event, TAG_OOM, agent->ending.oom);
  if (agent->ending.error[0] != 0) write_string(&event, TAG_ERROR, agent->ending.error);
  agent_send_fields(agent, FRAME_EVENT, 0, &event);
}

static bool channels_left(const struct agent *agent) {
  for (int i = 0; i < CHANNEL_MAX; i++) {
    if (agent->channels[i].used) return true;
  }
  return false;
}

uint64_t ending_update(struct agent *agent, uint64_t now) {
  bool late = now >= agent->end_deadline;
  if (agent->end_step == END_TERM && (!children_left() || late)) {
    if (children_left()) signal_all(agent, SIGKILL);
    step(agent, END_KILL, KILL_MS);
    late = false;
  }
  if (agent->end_step == END_KILL && (!children_left() || late)) {
    // A process that still holds the pipe now cannot be killed.
    relay_end(&agent->relay);
    step(agent, END_DRAIN, DRAIN_MS);
    late = false;
  }
  if (agent->end_step == END_DRAIN) {
    do {
      if (agent->relay.source.fd >= 0) relay_end(&agent->relay);
    } while (relay_pump(&agent->relay));
    if (relay_is_drained(&agent->relay) || late) {
      tell_host(agent);
      step(agent, END_FLUSH, FLUSH_MS);
      late = false;
    }
  }
  if (agent->end_step == END_FLUSH) {
    connection_flush(&agent->connection);
    bool told = agent->connection.out.used == 0 && !channels_left(agent);
    if (told || !agent->connection.synced || late) agent->end_step = END_DONE;
  }
  return agent->end_step == END_NOT || agent->end_step == END_DONE ? NEVER : agent->end_deadline;
}
