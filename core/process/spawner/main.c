// berth-spawner: starts the server's host commands for it. A process copies its page tables to start another one, which stops a server of some hundred megabytes for longer than many commands take; this one is small.
// usage: berth-spawner, with the server at the other ends of standard input and output (frame.h).
// It ends with the server, and the commands that run end with it; a process in the background goes on.
#include "command.h"
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

// The number is the same on all architectures, and older C libraries do not know it.
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static bool obey(void) {
  struct header header;
  const uint8_t *payload;
  bool over = false;
  while (frame_next(&header, &payload, &over)) {
    if (header.type == FRAME_KILL) command_kill(header.command);
    else if (header.type != FRAME_START || !command_start(header.command, payload, header.length)) return false;
  }
  return !over;
}

static bool turn(int ends) {
  size_t room = 2 + command_waits_room();
  struct pollfd waits[room];
  waits[0] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
  waits[1] = (struct pollfd){ .fd = ends, .events = POLLIN };
  size_t waited = command_waits(waits + 2);
  if (poll(waits, room, command_wait_ms()) < 0) return errno == EINTR;
  if ((waits[1].revents & POLLIN) != 0) {
    struct signalfd_siginfo ignored;
    if (read(ends, &ignored, sizeof ignored) < 0 && errno != EINTR) return false;
    command_reap();
  }
  if (!command_look(waits + 2, waited)) return false;
  if (waits[0].revents != 0) frame_read();
  return obey();
}

int main(void) {
  // Nothing that whoever started the server has left open is for its commands. Kernels before 5.9 cannot.
  syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
  // A signal to the server's group is for the server, which decides when this ends.
  signal(SIGTERM, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  // A server that has gone is told by write(2).
  signal(SIGPIPE, SIG_IGN);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, NULL);
  int ends = signalfd(-1, &child, SFD_CLOEXEC);
  if (ends < 0) return 1;
  while (turn(ends)) {}
  command_kill_all();
  return 0;
}
