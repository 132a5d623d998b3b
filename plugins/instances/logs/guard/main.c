// berth-log-guard: keeps the files that VMMs append to within a bound, whether or not a server runs. One process for all VMs of a data folder.
// usage: berth-log-guard INSTANCES_FOLDER LOG_BYTES REPORT_BYTES
// It lives as long as its standard input is open (that is the server's end of a pipe), and after that for as long as a VMM works below the folder.
#include "files.h"
#include "vmms.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_RETRY_MS = 100, ORPHAN_CHECK_MS = 2000 };

static bool is_removed(int root) {
  struct stat found;
  return fstat(root, &found) != 0 || found.st_nlink == 0;
}

// A guard with a server holds the lock. A guard without one looks whether there is such a guard, which then does its work.
static bool has_successor(int root) {
  if (flock(root, LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  flock(root, LOCK_UN);
  return false;
}

static bool server_is_gone(void) {
  char ignored[64];
  ssize_t length = read(STDIN_FILENO, ignored, sizeof ignored);
  return length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR);
}

static void pause_ms(long ms) {
  struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
  nanosleep(&time, NULL);
}

static long long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static int run(int root, const char *path) {
  bool orphaned = false, locked = false;
  long long next_check = 0;
  for (;;) {
    if (!orphaned && !locked) locked = flock(root, LOCK_EX | LOCK_NB) == 0;
    struct pollfd waits[] = { { .fd = files_descriptor(), .events = POLLIN }, { .fd = orphaned ? -1 : STDIN_FILENO, .events = POLLIN } };
    int limit = orphaned ? ORPHAN_CHECK_MS : locked ? -1 : LOCK_RETRY_MS;
    if (poll(waits, 2, limit) < 0 && errno != EINTR) return 1;
    if (!orphaned && waits[1].revents != 0 && server_is_gone()) {
      orphaned = true;
      flock(root, LOCK_UN);
    }
    if (orphaned && now_ms() >= next_check) {
      if (is_removed(root) || has_successor(root) || !vmms_work_below(path)) return 0;
      // A server that ends waits for this: its end of standard output closes here, or with the process.
      close(STDOUT_FILENO);
      next_check = now_ms() + ORPHAN_CHECK_MS;
    }
    if ((waits[0].revents & POLLIN) == 0) continue;
    // Not at each write: for a guest that writes much, this process would use as much of a processor as the guest. The room that is left says how long a pause is safe.
    pause_ms(files_look());
  }
}

int main(int count, char **words) {
  if (count != 4) {
    fputs("usage: berth-log-guard INSTANCES_FOLDER LOG_BYTES REPORT_BYTES\n", stderr);
    return 2;
  }
  // The server's end of standard error may be gone.
  signal(SIGPIPE, SIG_IGN);
  char *path = realpath(words[1], NULL);
  int root = path == NULL ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0 || fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) != 0 || !files_open(root, path, atoll(words[2]), atoll(words[3]))) {
    perror("berth-log-guard");
    return 1;
  }
  return run(root, path);
}
