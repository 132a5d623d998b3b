// The console of an image's own init: a terminal whose output becomes the program's output.
#include "console.h"
#include "log.h"
#include "pty.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <termios.h>
#include <unistd.h>

// Wide, since systemd cuts the names of its units to what fits.
enum { ROWS = 25, COLUMNS = 200 };

int console_open(int *ours, int *theirs) {
  int error = pty_open(ours, theirs, ROWS, COLUMNS);
  if (error != 0) return error;
  struct termios terminal;
  // Nobody types, and a line of the log ends with a newline alone, unless the init changes the terminal's settings.
  if (tcgetattr(*theirs, &terminal) == 0) {
    terminal.c_oflag &= (tcflag_t)~OPOST;
    terminal.c_lflag &= (tcflag_t)~ECHO;
    tcsetattr(*theirs, TCSANOW, &terminal);
  }
  unsigned int number;
  char path[32];
  if (ioctl(*ours, TIOCGPTN, &number) < 0) return 0;
  snprintf(path, sizeof path, "/dev/pts/%u", number);
  if (mount(path, "/dev/console", NULL, MS_BIND, NULL) < 0) log_problem("/dev/console: %s", strerror(errno));
  return 0;
}
