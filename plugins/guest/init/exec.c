// The kind `exec`: a command beside the program, with its own streams or terminal.
#include "exec.h"
#include "clock.h"
#include "pty.h"
#include "spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Our ends and the child's ends, in the order input, output, error.
struct streams {
  int ours[3];
  int theirs[3];
};

static void close_all(int fds[3]) {
  for (int i = 0; i < 3; i++) {
    if (fds[i] >= 0) close(fds[i]);
    fds[i] = -1;
  }
}

static bool open_pipes(struct streams *streams) {
  for (int i = 0; i < 3; i++) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) return false;
    streams->ours[i] = i == 0 ? ends[1] : ends[0];
    streams->theirs[i] = i == 0 ? ends[0] : ends[1];
    if (fcntl(streams->ours[i], F_SETFL, O_NONBLOCK) < 0) return false;
  }
  return true;
}

static bool open_terminal(struct streams *streams, const struct fields *fields) {
  int master, slave;
  int error = pty_open(&master, &slave, fields_number(fields, TAG_ROWS, 24), fields_number(fields, TAG_COLS, 80));
  if (error != 0) {
    errno = error;
    return false;
  }
  streams->ours[1] = master;
  // A descriptor for each direction, so that each has its own entry in epoll.
  streams->ours[0] = fcntl(master, F_DUPFD_CLOEXEC, 0);
  streams->theirs[0] = slave;
  streams->theirs[1] = fcntl(slave, F_DUPFD_CLOEXEC, 0);
  streams->theirs[2] = fcntl(slave, F_DUPFD_CLOEXEC, 0);
  return streams->ours[0] >= 0 && streams->theirs[1] >= 0 && streams->theirs[2] >= 0;
}

static pid_t start(const struct fields *fields, const struct workload *workload, const struct namespace *namespace, int cgroup, bool tty,
                   const struct streams *streams, int *status) {
  char **argv = fields_list(fields, TAG_ARGV);
  char **env = fields_list(fields, TAG_ENV);
  const char *user = fields_string(fields, TAG_USER, "");
  const char *cwd = fields_string(fields, TAG_CWD, "");
  struct spawn spawn = {
    .argv = argv,
    .env = workload->env,
    .more_env = env,
    .cwd = cwd[0] != 0 ? cwd : workload->cwd,
    .user = user[0] != 0 ? user : workload->user,
    .hostname = workload->identity.hostname,
    .tty = tty,
    .input = streams->theirs[0],
    .output = streams->theirs[1],
    .error = streams->theirs[2],
    .cgroup = cgroup,
    .namespace = namespace,
  };
  errno = ENOMEM;
  pid_t pid = argv == NULL || env == NULL ? -1 : spawn_start(&spawn, status);
  int error = errno;
  free(argv);
  free(env);
  errno = error;
  return pid;
}

bool exec_open(struct channel *channel, uint32_t id, struct connection *connection, const struct fields *fields,
               const struct workload *workload, const struct namespace *namespace, int cgroup, struct failure *failure) {
  if (fields_string(fields, TAG_ARGV, "")[0] == 0) {
    return fail(failure, EINVAL, EXIT_NOT_FOUND, "argv names no command");
  }
  bool tty = fields_number(fields, TAG_TTY, 0) != 0;
  struct streams streams = { { -1, -1, -1 }, { -1, -1, -1 } };
  int status = -1;
  pid_t pid = -1;
  if (tty ? open_terminal(&streams, fields) : open_pipes(&streams)) {
    pid = start(fields, workload, namespace, cgroup, tty, &streams, &status);
  }
  int error = errno;
  close_all(streams.theirs);
  if (pid < 0) {
    close_all(streams.ours);
    return fail(failure, error, EXIT_NOT_EXECUTABLE, "the command cannot be started: %s", strerror(error));
  }
  uint64_t timeout = fields_number(fields, TAG_TIMEOUT_MS, 0);
  struct channel_start begin = {
    .kind = CHANNEL_COMMAND, .pid = pid, .status = status, .tty = tty,
    .input = streams.ours[0], .output = streams.ours[1], .error = streams.ours[2],
    .timeout_at = timeout == 0 ? NEVER : clock_after(clock_ms(), timeout),
  };
  channel_start(channel, id, connection, &begin);
  return true;
}

void exec_resize(struct channel *channel, uint64_t rows, uint64_t cols) {
  if (channel->tty && channel->outputs[0].watch.fd >= 0) pty_resize(channel->outputs[0].watch.fd, rows, cols);
}
