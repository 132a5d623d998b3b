// An emulator that has just loaded a memory image translates each piece of code when it comes to it, for all processors. So the process is started before the image is
// captured, and a clone need not start it; and when its work is done it starts and ends another one, for what that takes is needed next, to start the program.
#include "aside.h"
#include "processors.h"
#include "protocol.h"
#include "warm-up.h"
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

struct report {
  bool good;
  struct failure failure;
};

static aside_work *work;
// A connection to the process that waits; -1: there is none.
static int waiting = -1;

static bool receive(int fd, void *into, size_t length) {
  for (size_t have = 0; have < length;) {
    ssize_t got = recv(fd, (char *)into + have, length - have, 0);
    if (got > 0) have += (size_t)got;
    else if (got == 0 || errno != EINTR) return false;
  }
  return true;
}

static bool transmit(int fd, const void *from, size_t length) {
  return send(fd, from, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static _Noreturn void serve(int fd) {
  struct network network;
  struct report report = { 0 };
  if (!receive(fd, &network, sizeof network)) _exit(0);
  report.good = work(&network, &report.failure);
  if (transmit(fd, &report, sizeof report)) warm_up();
  _exit(0);
}

static int start(void) {
  int ends[2];
  if (!processors_are_several() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) return -1;
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    serve(ends[1]);
  }
  close(ends[1]);
  if (child > 0) return ends[0];
  close(ends[0]);
  return -1;
}

void aside_prepare(aside_work *what) {
  work = what;
  waiting = start();
}

void aside_forget(void) {
  if (waiting >= 0) close(waiting);
  waiting = -1;
}

bool aside_begin(struct aside *aside, const struct network *network) {
  *aside = (struct aside){ .report = waiting >= 0 ? waiting : start() };
  waiting = -1;
  if (aside->report >= 0 && transmit(aside->report, network, sizeof *network)) return true;
  if (aside->report >= 0) close(aside->report);
  aside->report = -1;
  aside->good = work(network, &aside->failure);
  return false;
}

bool aside_end(struct aside *aside, struct failure *failure) {
  struct report report;
  if (aside->report >= 0) {
    bool told = receive(aside->report, &report, sizeof report);
    close(aside->report);
    aside->report = -1;
    aside->good = told ? report.good : fail(&aside->failure, ECHILD, EXIT_BOOT_FAILED, "the process that prepares the machine ended unexpectedly");
    if (told) aside->failure = report.failure;
  }
  if (!aside->good) *failure = aside->failure;
  return aside->good;
}
