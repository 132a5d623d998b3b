// The agent: the host's frames become channels, the program and its end; runs as first process or, in tests, on a socket.
#include "agent.h"
#include "boot-id.h"
#include "clock.h"
#include "ending.h"
#include "exec.h"
#include "hello.h"
#include "log.h"
#include "program.h"
#include "rehearsal-wake.h"
#include "worker.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS_PER_TURN = 32 };

void agent_send_fields(struct agent *agent, uint8_t type, uint32_t channel, const struct writer *writer) {
  struct frame frame = { .type = type, .channel = channel, .length = (uint32_t)writer->length, .payload = writer->bytes };
  connection_send(&agent->connection, &frame);
}

void agent_send_failure(struct agent *agent, uint32_t channel, const struct failure *failure) {
  if (channel == 0) return;
  uint8_t bytes[1024];
  struct writer writer = { .bytes = bytes, .capacity = sizeof bytes };
  write_string(&writer, TAG_ERROR, failure->message);
  write_number(&writer, TAG_ERRNO, (uint32_t)failure->error);
  if (failure->exit_code != NO_EXIT) write_number(&writer, TAG_EXIT_CODE, (uint32_t)failure->exit_code);
  agent_send_fields(agent, FRAME_RESULT, channel, &writer);
}

pid_t agent_fork(const struct agent *agent) {
  pid_t pid = fork();
  if (pid != 0) return pid;
  for (int i = 0; i < CHANNEL_MAX; i++) channel_forget(&agent->channels[i]);
  listen_forget(&agent->listen);
  return 0;
}

static void host_synced(void *owner) {
  struct agent *agent = owner;
  uint8_t bytes[1024];
  struct writer hello = { .bytes = bytes, .capacity = sizeof bytes };
  hello_write(agent, &hello);
  agent_send_fields(agent, FRAME_HELLO, 0, &hello);
  agent->resumed = agent->synced && agent->phase == PHASE_ASLEEP;
  agent->synced = true;
}

static void host_lost(void *owner) {
  struct agent *agent = owner;
  agent->run_channel = agent->rehearsal.channel = agent->volume_work.channel = 0;
  trust_free(&agent->trust);
  sleep_host_lost(agent);
  flush_host_lost(agent);
  for (int i = 0; i < CHANNEL_MAX; i++) channel_drop(&agent->channels[i]);
  listen_drop(&agent->listen);
}

static struct channel *find_channel(struct agent *agent, uint32_t id) {
  for (int i = 0; i < CHANNEL_MAX; i++) {
    struct channel *channel = &agent->channels[i];
    if (channel->used && !channel->dropped && channel->id == id) return channel;
  }
  return NULL;
}

// Channels that listen, accept and connect count as well.
static struct channel *free_channel(struct agent *agent) {
  struct channel *found = NULL;
  int used = listen_count(&agent->listen);
  for (int i = 0; i < CHANNEL_MAX; i++) {
    if (agent->channels[i].used) used++;
    else if (found == NULL) found = &agent->channels[i];
  }
  return used < CHANNEL_MAX ? found : NULL;
}

// Whether a channel for exec, put, get, stat, listen, accept or connect can be opened now; if not, `failure` says why.
static bool may_open(struct agent *agent, struct failure *failure) {
  if (agent->has_workload && !agent->workload.agent) {
    return fail(failure, EOPNOTSUPP, NO_EXIT, "the guest agent is disabled for this instance");
  }
  if (agent->phase == PHASE_WAITING) return fail(failure, EAGAIN, NO_EXIT, "the guest has no workload yet");
  if (agent->sleep.step != SLEEP_NOT) return fail(failure, EAGAIN, NO_EXIT, "the instance is asleep");
  if (agent->phase == PHASE_EXITING) return fail(failure, ESHUTDOWN, NO_EXIT, "the instance is ending");
  if (free_channel(agent) == NULL) return fail(failure, EAGAIN, NO_EXIT, "too many channels are open");
  return true;
}

static bool open_channel(struct agent *agent, const struct frame *frame, const struct fields *fields, struct failure *failure) {
  const char *kind = fields_string(fields, TAG_KIND, "");
  struct channel *channel = free_channel(agent);
  struct connection *connection = &agent->connection;
  bool command = strcmp(kind, "exec") == 0;
  enum worker_kind worker = strcmp(kind, "put") == 0 ? WORKER_PUT : strcmp(kind, "get") == 0 ? WORKER_GET : WORKER_STAT;
  if (!command && worker == WORKER_STAT && strcmp(kind, "stat") != 0) {
    return fail(failure, EINVAL, NO_EXIT, "the guest does not know the kind \"%.64s\"", kind);
  }
  if (!may_open(agent, failure)) return false;
  if (command) {
    const struct namespace *namespace = agent->init == INIT_NONE ? NULL : &agent->namespace;
    return exec_open(channel, frame->channel, connection, fields, &agent->workload, namespace, agent->cgroups.commands, failure);
  }
  return worker_open(channel, frame->channel, connection, worker, fields, failure);
}

static bool open_listening(struct agent *agent, const struct frame *frame, const struct fields *fields, struct failure *failure) {
  if (!may_open(agent, failure)) return false;
  if (agent->phase != PHASE_RUNNING) return fail(failure, EAGAIN, NO_EXIT, "the program is just being started");
  const char *kind = fields_string(fields, TAG_KIND, "");
  if (strcmp(kind, "listen") == 0) return listen_open(&agent->listen, frame->channel, fields, failure);
  if (strcmp(kind, "accept") == 0) return accept_open(&agent->listen, frame->channel, fields, failure);
  return connect_open(&agent->listen, frame->channel, fields, failure);
}

static void shutdown_asked(struct agent *agent, const struct frame *frame, const struct fields *fields) {
  agent_send_fields(agent, FRAME_RESULT, frame->channel, &(struct writer){ 0 });
  program_stop(agent, fields_number(fields, TAG_GRACE_MS, 0), fields_number(fields, TAG_SIGNAL, SIGTERM));
}

static void trust_announced(struct agent *agent, const struct frame *frame, const struct fields *fields) {
  struct failure failure = { 0 };
  if (agent->phase != PHASE_WAITING) fail(&failure, EALREADY, NO_EXIT, "this guest has its workload already");
  else trust_take(&agent->trust, fields, &failure);
  if (failure.error == 0) agent_send_fields(agent, FRAME_RESULT, frame->channel, &(struct writer){ 0 });
  else agent_send_failure(agent, frame->channel, &failure);
}

// So that a memory image of this guest holds disks that are ready.
static void bind_asked(struct agent *agent, uint32_t channel) {
  struct failure failure = { 0 };
  if (agent->platform->bind == NULL) fail(&failure, EOPNOTSUPP, NO_EXIT, "this guest has no disks");
  else if (agent->phase != PHASE_WAITING) fail(&failure, EALREADY, NO_EXIT, "this guest has its workload already");
  else if (rehearsal_is_over(agent, &failure)) agent->platform->bind();
  if (failure.error == 0) agent_send_fields(agent, FRAME_RESULT, channel, &(struct writer){ 0 });
  else agent_send_failure(agent, channel, &failure);
}

static void rehearse_asked(struct agent *agent, const struct frame *frame, const struct fields *fields) {
  struct failure failure;
  if (agent->phase != PHASE_ASLEEP) rehearsal_asked(agent, frame->channel, fields);
  else if (!rehearsal_wake(agent, free_channel(agent), frame->channel, fields, &failure)) agent_send_failure(agent, frame->channel, &failure);
}

static bool is_run(const struct frame *frame) {
  // Compared without parsing, since a workload parses its own copy.
  static const uint8_t run[] = { TAG_KIND, 3, 0, 0, 0, 'r', 'u', 'n' };
  return frame->length >= sizeof run && memcmp(frame->payload, run, sizeof run) == 0;
}

static void take_open(struct agent *agent, const struct frame *frame) {
  struct failure failure = { 0 };
  struct fields fields;
  if (find_channel(agent, frame->channel) != NULL || listen_has(&agent->listen, frame->channel)) return;
  if (is_run(frame)) {
    program_run(agent, frame);
    return;
  }
  int error = fields_parse(frame->payload, frame->length, &fields);
  if (error != 0) {
    fail(&failure, error, NO_EXIT, "the request is malformed");
    agent_send_failure(agent, frame->channel, &failure);
    return;
  }
  const char *kind = fields_string(&fields, TAG_KIND, "");
  if (strcmp(kind, "shutdown") == 0) shutdown_asked(agent, frame, &fields);
  else if (strcmp(kind, "trust") == 0) trust_announced(agent, frame, &fields);
  else if (strcmp(kind, "sleep") == 0) sleep_asked(agent, frame->channel, &fields);
  else if (strcmp(kind, "flush") == 0) flush_asked(agent, frame->channel);
  else if (strcmp(kind, "wake") == 0) wake_asked(agent, frame->channel, &fields);
  else if (strcmp(kind, "mount") == 0) volume_mount_asked(agent, frame->channel, &fields);
  else if (strcmp(kind, "unmount") == 0) volume_unmount_asked(agent, frame->channel, &fields);
  else if (strcmp(kind, "rehearse") == 0) rehearse_asked(agent, frame, &fields);
  else if (strcmp(kind, "bind") == 0) bind_asked(agent, frame->channel);
  else {
    bool listening = strcmp(kind, "listen") == 0 || strcmp(kind, "accept") == 0 || strcmp(kind, "connect") == 0;
    bool opened = listening ? open_listening(agent, frame, &fields, &failure) : open_channel(agent, frame, &fields, &failure);
    if (!opened) agent_send_failure(agent, frame->channel, &failure);
  }
  fields_free(&fields);
}

static void take_control(struct channel *channel, const struct frame *frame) {
  struct fields fields;
  if (fields_parse(frame->payload, frame->length, &fields) != 0) return;
  const char *operation = fields_string(&fields, TAG_KIND, "");
  if (strcmp(operation, "resize") == 0) {
    exec_resize(channel, fields_number(&fields, TAG_ROWS, 0), fields_number(&fields, TAG_COLS, 0));
  } else if (strcmp(operation, "signal") == 0) {
    uint64_t number = fields_number(&fields, TAG_SIGNAL, 0);
    channel_signal(channel, number < NSIG ? (int)number : 0);
  } else if (strcmp(operation, "cancel") == 0) {
    channel_cancel(channel);
  }
  fields_free(&fields);
}

static void host_frame(void *owner, const struct frame *frame) {
  struct agent *agent = owner;
  if (frame->type == FRAME_OPEN) {
    take_open(agent, frame);
    return;
  }
  if (listen_frame(&agent->listen, frame)) return;
  // An unknown channel is no violation: our RESULT may cross what the host still sends.
  struct channel *channel = find_channel(agent, frame->channel);
  if (channel == NULL) return;
  const uint8_t *bytes = frame->payload;
  if (frame->type == FRAME_DATA) channel_data(channel, frame);
  else if (frame->type == FRAME_EOF) channel_input_end(channel, frame);
  else if (frame->type == FRAME_CONTROL) take_control(channel, frame);
  else if (frame->type == FRAME_CREDIT) {
    uint32_t credit = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    channel_credit(channel, frame->stream, credit);
  }
}

static const struct connection_events connection_events = { host_synced, host_lost, host_frame };

static void child_ended(struct agent *agent, pid_t pid, int wait_status) {
  if (pid == agent->program) {
    program_exited(agent, wait_status);
    return;
  }
  if (sleep_child_ended(agent, pid, wait_status) || flush_child_ended(agent, pid, wait_status) || rehearsal_child_ended(agent, pid, wait_status) ||
      volume_child_ended(agent, pid, wait_status)) return;
  for (int i = 0; i < CHANNEL_MAX; i++) {
    struct channel *channel = &agent->channels[i];
    if (!channel->used || channel->exited || channel->pid != pid) continue;
    channel_exited(channel, wait_status);
    return;
  }
}

static void children_changed(struct watch *watch, uint32_t events) {
  struct agent *agent = watch->owner;
  (void)events;
  struct signalfd_siginfo infos[8];
  while (read(watch->fd, infos, sizeof infos) == (ssize_t)sizeof infos);
  int wait_status;
  for (pid_t pid; (pid = waitpid(-1, &wait_status, WNOHANG)) > 0;) child_ended(agent, pid, wait_status);
}

bool agent_init(struct agent *agent, const struct platform *platform, int agent_port, int output_port, int report_port) {
  memset(agent, 0, sizeof *agent);
  agent->platform = platform;
  agent->report_port = report_port;
  agent->cgroups = (struct cgroups){ -1, -1, -1 };
  agent->stop_kill_at = agent->end_deadline = agent->sleep.deadline = agent->flush.deadline = NEVER;
  watch_init(&agent->start_status, -1, NULL, agent);
  listen_init(&agent->listen, &agent->connection);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  signal(SIGPIPE, SIG_IGN);
  agent->epoll = epoll_create1(EPOLL_CLOEXEC);
  watch_init(&agent->children, signalfd(-1, &blocked, SFD_NONBLOCK | SFD_CLOEXEC), children_changed, agent);
  return agent->epoll >= 0 && agent->children.fd >= 0 && watch_want(agent->epoll, &agent->children, EPOLLIN) &&
         relay_init(&agent->relay, agent->epoll, output_port, platform->open_output) &&
         connection_init(&agent->connection, agent->epoll, agent_port, &connection_events, agent);
}

static uint64_t update(struct agent *agent) {
  uint64_t now = clock_ms();
  uint64_t next = clock_first(program_update(agent, now), ending_update(agent, now));
  next = clock_first(next, sleep_update(agent, now));
  next = clock_first(next, flush_update(agent, now));
  next = clock_first(next, connection_update(&agent->connection, now));
  next = clock_first(next, relay_due(&agent->relay));
  for (int i = 0; i < CHANNEL_MAX; i++) {
    if (agent->channels[i].used) next = clock_first(next, channel_update(&agent->channels[i], now));
  }
  listen_update(&agent->listen);
  return next;
}

void agent_run(struct agent *agent) {
  while (agent->end_step != END_DONE) {
    connection_pump(&agent->connection);
    bool busy = relay_pump(&agent->relay);
    bool had_room = connection_has_room(&agent->connection);
    uint64_t next = update(agent);
    connection_flush(&agent->connection);
    if (agent->end_step == END_DONE) break;
    if (agent->phase == PHASE_RUNNING) boot_id_remember();
    if (agent->resumed && agent->platform->warm_up != NULL) agent->platform->warm_up();
    agent->resumed = false;
    // There is no event for room that our own write has made.
    busy = busy || connection_may_read(&agent->connection) || (!had_room && connection_has_room(&agent->connection));
    struct epoll_event events[EVENTS_PER_TURN];
    int count = epoll_wait(agent->epoll, events, EVENTS_PER_TURN, busy ? 0 : clock_timeout(clock_ms(), next));
    for (int i = 0; i < count; i++) {
      struct watch *watch = events[i].data.ptr;
      // An earlier event of this turn may have closed it.
      if (watch->fd >= 0) watch->ready(watch, events[i].events);
    }
  }
  agent->platform->finish();
}
