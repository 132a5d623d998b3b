// Starts a command of the workload: session, terminal, user, folder, environment, and the search for its file.
#include "spawn.h"
#include "accounts.h"
#include "environment.h"
#include "files.h"
#include "protocol.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STATUS = 3, SPARE = 16, FILES_SOFT = 1024, FILES_HARD = 524288, TTY_GROUP = 5 };

int proc_folder = -1;

void child_signals(void) {
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

void child_descriptors(int input, int output, int error, int status) {
  int from[] = { input, output, error, status };
  // Moves them out of the range 0 to 3 first, since otherwise a dup2 could close the source of the next.
  for (int i = 0; i < 4; i++) {
    from[i] = fcntl(from[i] < 0 ? open("/dev/null", O_RDWR | O_CLOEXEC) : from[i], F_DUPFD, SPARE);
  }
  for (int i = 0; i < 4; i++) dup2(from[i], i);
  fcntl(STATUS, F_SETFD, FD_CLOEXEC);
  if (close_range(STATUS + 1, ~0U, 0) == 0) return;
  for (int fd = STATUS + 1; fd < FILES_SOFT; fd++) close(fd);
}

// A pipe or terminal must belong to the command's user, since the command may open /dev/stdout again.
static void own_descriptors(const struct spawn *spawn, const struct account *account) {
  for (int fd = 0; fd <= 2; fd++) {
    struct stat facts;
    if (fstat(fd, &facts) < 0) continue;
    if (S_ISFIFO(facts.st_mode) && facts.st_uid == account->uid && facts.st_gid == account->gid) continue;
    if (S_ISFIFO(facts.st_mode)) fchown(fd, account->uid, account->gid);
    else if (spawn->tty) fchown(fd, account->uid, TTY_GROUP);
  }
}

static bool enter_folder(const struct spawn *spawn, struct failure *failure) {
  const char *cwd = spawn->cwd == NULL || spawn->cwd[0] == 0 ? "/" : spawn->cwd;
  int error = spawn->make_cwd ? folder_make(cwd, 0755) : 0;
  if (error == 0 && chdir(cwd) < 0) error = errno;
  if (error == 0) return true;
  return fail(failure, error, EXIT_NOT_EXECUTABLE, "the working directory \"%s\" cannot be entered: %s", cwd,
              strerror(error));
}

static bool become(const struct account *account, struct failure *failure) {
  if (setgroups(account->group_count, account->groups) == 0 &&
      setresgid(account->gid, account->gid, account->gid) == 0 &&
      setresuid(account->uid, account->uid, account->uid) == 0) return true;
  return fail(failure, errno, EXIT_NOT_EXECUTABLE, "cannot become uid %u, gid %u: %s", account->uid, account->gid,
              strerror(errno));
}

static size_t length_of(char *const *list) {
  size_t count = 0;
  while (list != NULL && list[count] != NULL) count++;
  return count;
}

static bool build_environment(const struct spawn *spawn, const struct account *account, struct environment *environment) {
  enum { DEFAULTS = 5 };
  if (!environment_init(environment, length_of(spawn->env) + length_of(spawn->more_env) + DEFAULTS)) return false;
  for (char *const *item = spawn->env; item != NULL && *item != NULL; item++) environment_set(environment, *item);
  for (char *const *item = spawn->more_env; item != NULL && *item != NULL; item++) environment_set(environment, *item);
  environment_default(environment, "PATH", DEFAULT_PATH);
  environment_default(environment, "HOME", account->home);
  if (spawn->hostname[0] != 0) environment_default(environment, "HOSTNAME", spawn->hostname);
  if (spawn->tty) environment_default(environment, "TERM", "xterm");
  if (spawn->init_root != NULL) {
    environment_default(environment, "container", "berth");
    // Its terminal is a file: no colours, and no questions to a user.
    environment_default(environment, "TERM", "dumb");
  }
  return true;
}

static bool explain(int error, const char *name, const char *file, struct failure *failure) {
  struct stat facts;
  if (error == ENOENT && stat(file, &facts) == 0) {
    return fail(failure, error, EXIT_NOT_FOUND, "\"%s\" exists, but the interpreter or loader that it asks for does not", name);
  }
  if (error == EACCES && stat(file, &facts) == 0 && S_ISDIR(facts.st_mode)) {
    return fail(failure, EISDIR, EXIT_NOT_EXECUTABLE, "\"%s\" is a folder", name);
  }
  if (error == ENOEXEC) {
    return fail(failure, error, EXIT_NOT_EXECUTABLE,
                "\"%s\" is not a program for this machine, nor a script whose first line names its interpreter", name);
  }
  if (error == ENOENT || error == ENOTDIR) {
    return fail(failure, error, EXIT_NOT_FOUND,
                strchr(name, '/') == NULL ? "\"%s\" was not found in PATH" : "\"%s\" was not found", name);
  }
  return fail(failure, error, EXIT_NOT_EXECUTABLE, "\"%s\" cannot be executed: %s", name, strerror(error));
}

// Like execvp, without its fallback to a shell. Returns only when nothing could be started.
static bool execute(const struct spawn *spawn, const struct environment *environment, struct failure *failure) {
  const char *name = spawn->argv[0];
  char candidate[PATH_MAX] = "", refused[PATH_MAX] = "";
  if (strchr(name, '/') != NULL) {
    execve(name, spawn->argv, environment->items);
    return explain(errno, name, name, failure);
  }
  int error = ENOENT;
  const char *path = environment_get(environment, "PATH");
  while (name[0] != 0 && path_next(&path, name, candidate, sizeof candidate)) {
    execve(candidate, spawn->argv, environment->items);
    int why = errno;
    struct stat facts;
    bool exists = stat(candidate, &facts) == 0;
    if (exists ? S_ISDIR(facts.st_mode) : why != EACCES) continue;
    // A file that exists and cannot be run is the better error than a missing one; a later folder may still have the right file.
    if (refused[0] == 0) {
      error = why;
      memcpy(refused, candidate, sizeof refused);
    }
    if (why != EACCES) break;
  }
  return explain(error, refused[0] == 0 ? name : refused, refused, failure);
}

static bool child(const struct spawn *spawn, struct failure *failure) {
  struct rlimit files = { FILES_SOFT, FILES_HARD };
  setrlimit(RLIMIT_NOFILE, &files);
  umask(022);
  if (spawn->tty) ioctl(0, TIOCSCTTY, 0);
  static struct account account;
  struct environment environment;
  if (spawn->init_root != NULL && !spawn->init_root(failure)) return false;
  if (!account_load(spawn->user, &account, failure)) return false;
  if (!enter_folder(spawn, failure)) return false;
  own_descriptors(spawn, &account);
  if (!become(&account, failure)) return false;
  if (!build_environment(spawn, &account, &environment)) {
    return fail(failure, ENOMEM, EXIT_NOT_EXECUTABLE, "out of memory");
  }
  child_signals();
  return execute(spawn, &environment, failure);
}

// Born in the group: moving a process later makes the kernel wait until all processors are quiescent.
static pid_t fork_into(const struct spawn *spawn) {
  bool init = spawn->init_root != NULL;
  if (spawn->cgroup < 0 && !init) return fork();
  struct clone_args how = { .flags = init ? CLONE_NEWPID : 0, .exit_signal = SIGCHLD };
  if (spawn->cgroup >= 0) {
    how.flags |= CLONE_INTO_CGROUP;
    how.cgroup = (uint64_t)spawn->cgroup;
  }
  return (pid_t)syscall(SYS_clone3, &how, sizeof how);
}

// Always a child of this process, whatever its namespace: its signals and its exit are reported here.
static pid_t fork_at(const struct spawn *spawn) {
  if (spawn->namespace == NULL) return fork_into(spawn);
  if (!namespace_enter(spawn->namespace)) return -1;
  pid_t pid = fork_into(spawn);
  int error = errno;
  if (pid == 0) namespace_see_groups(spawn->namespace);
  else namespace_leave(spawn->namespace);
  errno = error;
  return pid;
}

pid_t spawn_start(const struct spawn *spawn, int *status) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) return -1;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  pid_t pid = fork_at(spawn);
  if (pid == 0) {
    setsid();
    child_descriptors(spawn->input, spawn->output, spawn->error, ends[1]);
    struct failure failure = { 0 };
    child(spawn, &failure);
    write_all(STATUS, &failure, sizeof failure);
    _exit(EXIT_NOT_FOUND);
  }
  int error = errno;
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    errno = error;
    return -1;
  }
  *status = ends[0];
  return pid;
}
