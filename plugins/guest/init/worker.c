// Runs put, get and stat in a fork of this program: a hanging file system or a hostile race affects the fork and not the agent.
#include "worker.h"
#include "clock.h"
#include "file-get.h"
#include "file-put.h"
#include "file-stat.h"
#include "files.h"
#include "spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATUS = 3, OPEN_FILES = 4096 };

static void work(enum worker_kind kind, const struct fields *fields) {
  static uint8_t bytes[CHANNEL_STATUS_MAX];
  struct writer result = { .bytes = bytes, .capacity = sizeof bytes };
  struct rlimit files = { OPEN_FILES, OPEN_FILES };
  setrlimit(RLIMIT_NOFILE, &files);
  umask(0);
  if (chdir("/") < 0) write_number(&result, TAG_ERRNO, (uint64_t)errno);
  else if (kind == WORKER_PUT) file_put(fields, 0, &result);
  else if (kind == WORKER_GET) file_get(fields, 1, &result);
  else file_stat(fields, &result);
  write_all(STATUS, result.bytes, result.length);
}

static bool open_pipe(bool wanted, bool reading, int *ours, int *theirs) {
  int ends[2];
  if (!wanted) return true;
  if (pipe2(ends, O_CLOEXEC) < 0) return false;
  *ours = ends[reading ? 0 : 1];
  *theirs = ends[reading ? 1 : 0];
  return fcntl(*ours, F_SETFL, O_NONBLOCK) == 0;
}

static pid_t start(enum worker_kind kind, const struct fields *fields, const int theirs[3]) {
  pid_t pid = fork();
  if (pid != 0) return pid;
  child_descriptors(theirs[0], theirs[1], -1, theirs[2]);
  child_signals();
  work(kind, fields);
  _exit(0);
}

bool worker_open(struct channel *channel, uint32_t id, struct connection *connection, enum worker_kind kind,
                 const struct fields *fields, struct failure *failure) {
  // Input, output, status.
  int ours[3] = { -1, -1, -1 }, theirs[3] = { -1, -1, -1 };
  pid_t pid = -1;
  if (open_pipe(kind == WORKER_PUT, false, &ours[0], &theirs[0]) &&
      open_pipe(kind == WORKER_GET, true, &ours[1], &theirs[1]) && open_pipe(true, true, &ours[2], &theirs[2])) {
    pid = start(kind, fields, theirs);
  }
  int error = errno;
  for (int i = 0; i < 3; i++) {
    if (theirs[i] >= 0) close(theirs[i]);
    if (pid < 0 && ours[i] >= 0) close(ours[i]);
  }
  if (pid < 0) return fail(failure, error, EXIT_NOT_EXECUTABLE, "no worker can be started: %s", strerror(error));
  struct channel_start begin = {
    .kind = CHANNEL_FILES, .pid = pid, .input = ours[0], .output = ours[1], .error = -1, .status = ours[2],
    .timeout_at = NEVER,
  };
  channel_start(channel, id, connection, &begin);
  return true;
}
