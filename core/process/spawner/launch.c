// Becomes what a FRAME_START asks for, in a process of its own.
#include "launch.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// Numbers of descriptors in the new process: the first of the files that it is given, and one that is above all of them.
enum { FIRST_FILE = 3, MAX_FILES = 8, HIGH = FIRST_FILE + MAX_FILES };

static void close_end(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

// A file without a name, at its beginning, so that nobody has to wait until the command reads.
static int hold(const uint8_t *bytes, size_t length) {
  int fd = memfd_create("input", MFD_CLOEXEC);
  while (fd >= 0 && length > 0) {
    ssize_t written = write(fd, bytes, length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      int why = errno;
      close(fd);
      errno = why;
      return -1;
    }
    bytes += written;
    length -= (size_t)written;
  }
  if (fd >= 0) lseek(fd, 0, SEEK_SET);
  return fd;
}

// In the new process: `fd` gets a `number`, which its program has, too. False for -1.
static bool place(int fd, int number) {
  return fd >= 0 && dup2(fd, number) >= 0;
}

// In the new process: the descriptors from 0 on, as its program finds them. `out` are where its output goes; -1 for a log.
static bool open_files(const struct plan *plan, const int out[2]) {
  int input = plan->has_input ? hold(plan->input, plan->input_length) : open("/dev/null", O_RDONLY | O_CLOEXEC);
  int log = plan->log == NULL ? -1 : open(plan->log, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  if (!place(input, STDIN_FILENO)) return false;
  for (int i = 0; i < 2; i++) {
    if (!place(plan->log == NULL ? out[i] : log, STDOUT_FILENO + i)) return false;
  }
  // Those that are opened first may have taken the numbers of later ones.
  int next = FIRST_FILE;
  for (char **file = plan->files; *file != NULL; file++, next++) {
    int fd = open(*file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    if (fd == next) fcntl(fd, F_SETFD, 0);
    else if (!place(fd, next)) return false;
  }
  return true;
}

// In the new process. What fails is written to `report`, which a program that starts closes.
static void become(const struct plan *plan, const int out[2], int report, pid_t spawner) {
  sigset_t none;
  sigemptyset(&none);
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  // its own process group, so that a kill also reaches the processes that it started
  setsid();
  if (plan->log == NULL) {
    // A spawner that is killed can end nothing any more.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != spawner) _exit(127);
  }
  if (open_files(plan, out) && chdir(plan->words[0]) == 0) {
    environ = plan->variables;
    execvp(plan->words[1], plan->words + 2);
  }
  int why = errno;
  if (write(report, &why, sizeof why) < 0) _exit(126);
  _exit(127);
}

// Returns the pid, or -1 with errno set.
static pid_t spawn(const struct plan *plan, const int out[2]) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) < 0) return -1;
  pid_t spawner = getpid(), pid = fork();
  if (pid == 0) become(plan, out, fcntl(report[1], F_DUPFD_CLOEXEC, HIGH), spawner);
  int why = errno;
  close(report[1]);
  if (pid > 0) {
    ssize_t got;
    do got = read(report[0], &why, sizeof why);
    while (got < 0 && errno == EINTR);
    if (got == (ssize_t)sizeof why) {
      waitpid(pid, NULL, 0);
      pid = -1;
    }
  }
  close(report[0]);
  errno = why;
  return pid;
}

// The start of each text, and NULL at the end. Returns what comes behind that, or NULL when there are not as many texts.
static char **split(char **into, size_t wanted, const char **text, const char *end) {
  for (size_t i = 0; i < wanted; i++) {
    const char *nul = memchr(*text, 0, (size_t)(end - *text));
    if (nul == NULL) return NULL;
    into[i] = (char *)*text;
    *text = nul + 1;
  }
  into[wanted] = NULL;
  return into + wanted + 1;
}

bool plan_read(struct plan *plan, const uint8_t *payload, size_t length) {
  struct start start;
  *plan = (struct plan){ 0 };
  if (length < sizeof start) return false;
  memcpy(&start, payload, sizeof start);
  payload += sizeof start;
  length -= sizeof start;
  if (start.bytes > length || start.words < 3 || start.words > length || start.variables > length || start.files > MAX_FILES || start.log > 1) return false;
  char **lists = calloc((size_t)start.words + start.variables + start.files + start.log + 4, sizeof *lists);
  if (lists == NULL) return false;
  const char *text = (const char *)payload, *end = text + start.bytes;
  char **variables = split(lists, start.words, &text, end);
  char **files = variables == NULL ? NULL : split(variables, start.variables, &text, end);
  char **log = files == NULL ? NULL : split(files, start.files, &text, end);
  if (log == NULL || split(log, start.log, &text, end) == NULL) {
    free(lists);
    return false;
  }
  plan->words = lists;
  plan->variables = variables;
  plan->files = files;
  plan->log = log[0];
  plan->has_input = start.input != 0;
  plan->input = payload + start.bytes;
  plan->input_length = length - start.bytes;
  return true;
}

void plan_free(struct plan *plan) {
  free(plan->words);
}

pid_t launch(const struct plan *plan, int out[2]) {
  int ends[2][2] = { { -1, -1 }, { -1, -1 } };
  bool fine = plan->log != NULL || (pipe2(ends[0], O_CLOEXEC) == 0 && pipe2(ends[1], O_CLOEXEC) == 0);
  pid_t pid = fine ? spawn(plan, (int[]){ ends[0][1], ends[1][1] }) : -1;
  int why = errno;
  for (int i = 0; i < 2; i++) {
    close_end(&ends[i][1]);
    if (pid < 0) close_end(&ends[i][0]);
    out[i] = ends[i][0];
  }
  errno = why;
  return pid;
}
