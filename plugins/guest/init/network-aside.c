// In a process of its own where there is a processor for it: an emulator translates what the network and what the disks take of the kernel at the same time then.
#include "network-aside.h"
#include "network.h"
#include "protocol.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool has_processors(void) {
  cpu_set_t usable;
  return sched_getaffinity(0, sizeof usable, &usable) == 0 && CPU_COUNT(&usable) > 1;
}

static void tell(int report, const struct network *network) {
  struct failure failure = { 0 };
  if (!network_apply(network, &failure) && write(report, &failure, sizeof failure) != sizeof failure) _exit(1);
  _exit(0);
}

static bool begin_aside(struct network_aside *aside, const struct network *network) {
  int ends[2];
  if (!network->given || !has_processors() || pipe2(ends, O_CLOEXEC) < 0) return false;
  pid_t child = fork();
  if (child == 0) tell(ends[1], network);
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return false;
  }
  network_taken();
  aside->child = child;
  aside->report = ends[0];
  return true;
}

void network_begin(struct network_aside *aside, const struct network *network) {
  *aside = (struct network_aside){ 0 };
  if (!begin_aside(aside, network)) aside->good = network_apply(network, &aside->failure);
}

static bool hear(struct network_aside *aside) {
  size_t have = 0;
  ssize_t got;
  do {
    got = read(aside->report, (char *)&aside->failure + have, sizeof aside->failure - have);
    if (got > 0) have += (size_t)got;
  } while (got > 0 || (got < 0 && errno == EINTR));
  close(aside->report);
  int status = 0;
  while (waitpid(aside->child, &status, 0) < 0 && errno == EINTR);
  aside->failure.message[sizeof aside->failure.message - 1] = 0;
  if (have == sizeof aside->failure) return false;
  return (WIFEXITED(status) && WEXITSTATUS(status) == 0) || fail(&aside->failure, ECHILD, EXIT_BOOT_FAILED, "network: its process ended unexpectedly");
}

bool network_end(struct network_aside *aside, struct failure *failure) {
  if (aside->child > 0) aside->good = hear(aside);
  aside->child = 0;
  if (!aside->good) *failure = aside->failure;
  return aside->good;
}
