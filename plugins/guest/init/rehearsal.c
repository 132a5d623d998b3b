// The kind `rehearse`: one start of a program on the current disks, isolated from everything else, which leaves no trace.
//
// Two forks: the director waits, cleans up and answers; the actor, in namespaces of its own, is an agent like this one, with a host that
// sends only a sync, a `trust` and a `run`. So everything that a start executes has been executed once, in this program and in the kernel.
#include "rehearsal.h"
#include "agent.h"
#include "clock.h"
#include "disks.h"
#include "files.h"
#include "rehearsal-sleep.h"
#include "spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 8000, RUN_MAX = 1024, ACTOR_FAILED = 1 };

// Nobody's certificate, on disks that are thrown away; it exercises what many starts do. A key store accepts it as a certificate.
#define CERTIFICATE "-----BEGIN CERTIFICATE-----\nMAlSZWhlYXJzYWw=\n-----END CERTIFICATE-----\n"

static void no_finish(void) {
}

// As the host would send it, with the time and the randomness from the request.
static size_t write_run(const char *program, const struct fields *asked, uint8_t *bytes, size_t size) {
  struct writer run = { .bytes = bytes, .capacity = size };
  write_string(&run, TAG_KIND, "run");
  write_string(&run, TAG_ARGV, program);
  write_string(&run, TAG_ARGV, "rehearsal");
  write_string(&run, TAG_ENV, "PATH=/usr/sbin:/usr/bin:/sbin:/bin");
  write_string(&run, TAG_CWD, "/");
  write_string(&run, TAG_HOSTNAME, "rehearsal");
  write_number(&run, TAG_TRUST, sizeof CERTIFICATE - 1);
  write_number(&run, TAG_REALTIME_NS, fields_number(asked, TAG_REALTIME_NS, 0));
  const struct field *headers = fields_find(asked, TAG_KERNEL_HEADERS);
  if (headers != NULL && headers->length < DISK_NAME_SIZE) write_field(&run, TAG_KERNEL_HEADERS, headers->bytes, headers->length);
  const struct field *entropy = fields_find(asked, TAG_ENTROPY);
  if (entropy != NULL && entropy->length <= ENTROPY_MAX) write_field(&run, TAG_ENTROPY, entropy->bytes, entropy->length);
  // The device is the machine's own, so it has this configuration from now on, and the real start finds it so.
  const struct field *network = fields_find(asked, TAG_NETWORK);
  if (network != NULL) write_field(&run, TAG_NETWORK, network->bytes, network->length);
  return run.length;
}

static size_t write_trust(uint8_t *bytes, size_t size) {
  struct writer trust = { .bytes = bytes, .capacity = size };
  write_string(&trust, TAG_KIND, "trust");
  write_string(&trust, TAG_CERTIFICATE, CERTIFICATE);
  write_string(&trust, TAG_SUBJECT_HASH, "00000000");
  write_string(&trust, TAG_BUNDLE, CERTIFICATE);
  return trust.length;
}

static bool open_channel(int fd, uint32_t channel, const uint8_t *payload, size_t length) {
  uint8_t header[FRAME_HEADER];
  struct frame frame = { .type = FRAME_OPEN, .channel = channel, .length = (uint32_t)length };
  frame_write_header(header, &frame);
  return write_all(fd, header, sizeof header) && write_all(fd, payload, length);
}

static bool speak_as_host(int fd, const char *program, const struct fields *asked) {
  uint8_t sync[SYNC_SIZE] = { 0 }, trust[RUN_MAX], run[RUN_MAX];
  memcpy(sync, frame_magic, MAGIC_SIZE);
  return write_all(fd, sync, sizeof sync) && open_channel(fd, 1, trust, write_trust(trust, sizeof trust)) &&
         open_channel(fd, 2, run, write_run(program, asked, run, sizeof run));
}

static bool act(const struct rehearsal_place *place, const struct fields *asked, struct failure *failure) {
  static struct agent actor;
  const struct platform platform = { .prepare = place->prepare, .finish = no_finish };
  int host[2], output[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, host) < 0 ||
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, output) < 0 || !speak_as_host(host[1], place->program, asked) ||
      !agent_init(&actor, &platform, host[0], output[0], -1)) {
    return fail(failure, errno, NO_EXIT, "the rehearsal cannot be prepared: %s", strerror(errno));
  }
  agent_run(&actor);
  rehearsal_sleep(&actor.cgroups);
  if (place->leave != NULL) place->leave();
  if (actor.ending.exit_code == 0) return true;
  const char *why = actor.ending.error[0] == 0 ? "its program failed" : actor.ending.error;
  return fail(failure, EIO, NO_EXIT, "the rehearsal failed: %s", why);
}

// SIGCHLD is blocked in this program; false after the time limit.
static bool ends_in_time(pid_t actor, int *wait_status) {
  uint64_t end = clock_ms() + LIMIT_MS;
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  for (;;) {
    if (waitpid(actor, wait_status, WNOHANG) == actor) return true;
    uint64_t now = clock_ms();
    if (now >= end) return false;
    struct timespec left = { (time_t)((end - now) / 1000), (long)((end - now) % 1000) * 1000000 };
    sigtimedwait(&child, NULL, &left);
  }
}

static bool direct(const struct rehearsal_place *place, const struct fields *asked, int status, struct failure *failure) {
  struct clone_args how = { .flags = place->namespaces, .exit_signal = SIGCHLD };
  pid_t actor = (pid_t)syscall(SYS_clone3, &how, sizeof how);
  if (actor < 0) return fail(failure, errno, NO_EXIT, "the rehearsal cannot be begun: %s", strerror(errno));
  if (actor == 0) {
    if (act(place, asked, failure)) _exit(0);
    write_all(status, failure, sizeof *failure);
    _exit(ACTOR_FAILED);
  }
  int wait_status;
  if (!ends_in_time(actor, &wait_status)) {
    kill(actor, SIGKILL);
    waitpid(actor, NULL, 0);
    return fail(failure, ETIMEDOUT, NO_EXIT, "the rehearsal did not end in time");
  }
  failure->error = 0;
  // The actor ended by itself.
  if (WIFEXITED(wait_status)) return WEXITSTATUS(wait_status) == 0;
  return fail(failure, EIO, NO_EXIT, "the rehearsal was ended by signal %d", WTERMSIG(wait_status));
}

static void begin(struct agent *agent, const struct fields *asked, struct failure *failure) {
  const struct rehearsal_place *place = agent->platform->rehearsal;
  struct rehearsal *rehearsal = &agent->rehearsal;
  int ends[2];
  rehearsal->director = pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0 ? -1 : agent_fork(agent);
  if (rehearsal->director < 0) {
    rehearsal->director = 0;
    fail(failure, errno, NO_EXIT, "the rehearsal cannot be begun: %s", strerror(errno));
    return;
  }
  if (rehearsal->director > 0) {
    close(ends[1]);
    rehearsal->status = ends[0];
    return;
  }
  bool good = direct(place, asked, ends[1], failure);
  if (!good && failure->error != 0) write_all(ends[1], failure, sizeof *failure);
  // In any case: a rehearsal that failed also leaves the disks as it found them.
  bool cleared = place->clear(failure);
  if (!cleared) write_all(ends[1], failure, sizeof *failure);
  _exit(good && cleared ? 0 : 1);
}

bool rehearsal_is_over(const struct agent *agent, struct failure *failure) {
  return agent->rehearsal.director == 0 || fail(failure, EAGAIN, NO_EXIT, "the guest is rehearsing");
}

static bool may(const struct agent *agent, struct failure *failure) {
  if (agent->platform->rehearsal == NULL) return fail(failure, EOPNOTSUPP, NO_EXIT, "this guest cannot rehearse");
  if (agent->phase != PHASE_WAITING) return fail(failure, EALREADY, NO_EXIT, "this guest has its workload already");
  return rehearsal_is_over(agent, failure);
}

void rehearsal_asked(struct agent *agent, uint32_t channel, const struct fields *fields) {
  struct failure failure = { 0 };
  struct identity identity;
  if (may(agent, &failure) && identity_parse(fields, &identity, &failure)) {
    agent->rehearsal.channel = channel;
    begin(agent, fields, &failure);
  }
  if (failure.error != 0) agent_send_failure(agent, channel, &failure);
}

bool rehearsal_child_ended(struct agent *agent, pid_t pid, int wait_status) {
  struct rehearsal *rehearsal = &agent->rehearsal;
  struct failure failure;
  if (pid != rehearsal->director) return false;
  rehearsal->director = 0;
  // Only complete failures are written, and the first is the cause.
  bool said = read(rehearsal->status, &failure, sizeof failure) == sizeof failure;
  close(rehearsal->status);
  if (!said) fail(&failure, EIO, NO_EXIT, "the rehearsal ended unexpectedly");
  failure.message[sizeof failure.message - 1] = 0;
  if (rehearsal->channel == 0) return true;
  if (wait_status == 0) agent_send_fields(agent, FRAME_RESULT, rehearsal->channel, &(struct writer){ 0 });
  else agent_send_failure(agent, rehearsal->channel, &failure);
  return true;
}
