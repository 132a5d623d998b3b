// Writes problems to the kernel's log, which reaches the host's VMM log through the console.
#include "log.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

// Kept open from the first moment on: a guest's root may later put anything at /dev/kmsg.
static int kmsg = -1;

void log_open(void) {
  kmsg = open("/dev/kmsg", O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

void log_problem(const char *format, ...) {
  if (kmsg < 0) return;
  char line[512];
  // Level 3 still shows on a console that was told to be quiet.
  int used = snprintf(line, sizeof line, "<3>berth-init: ");
  va_list arguments;
  va_start(arguments, format);
  int more = vsnprintf(line + used, sizeof line - (size_t)used, format, arguments);
  va_end(arguments);
  if (more < 0) return;
  used += more;
  if (used >= (int)sizeof line) used = sizeof line - 1;
  if (write(kmsg, line, (size_t)used) < 0) return; // nobody is left to tell
}
