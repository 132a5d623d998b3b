// The terminal of an exec with `tty`.
#include "pty.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static unsigned short clamp(uint64_t number) {
  return number > 65535 ? 65535 : (unsigned short)number;
}

void pty_resize(int master, uint64_t rows, uint64_t cols) {
  struct winsize size = { .ws_row = clamp(rows), .ws_col = clamp(cols) };
  ioctl(master, TIOCSWINSZ, &size);
}

int pty_open(int *master, int *slave, uint64_t rows, uint64_t cols) {
  // devpts' own node: /dev/ptmx of the image may lead elsewhere.
  *master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (*master < 0) return errno;
  int unlock = 0;
  // TIOCGPTPEER opens the other end without a path, which the guest could have replaced.
  *slave = ioctl(*master, TIOCSPTLCK, &unlock) < 0 ? -1 : ioctl(*master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*slave < 0) {
    int error = errno;
    close(*master);
    return error;
  }
  pty_resize(*master, rows, cols);
  return 0;
}

int pty_eof_character(int master) {
  struct termios terminal;
  if (tcgetattr(master, &terminal) < 0 || (terminal.c_lflag & ICANON) == 0) return -1;
  return terminal.c_cc[VEOF];
}
