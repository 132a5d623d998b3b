// Writes to the kernel's log; problems reach the host through the console, in the VMM's log.
#include "log.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

// Opened at the start and kept open: a guest's root may later put anything at /dev/kmsg.
static int kmsg = -1;

void log_open(void) {
  kmsg = open("/dev/kmsg", O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

static void write_line(int level, const char *format, va_list arguments) {
  if (kmsg < 0) return;
  char line[512];
  int used = snprintf(line, sizeof line, "<%d>berth-init: ", level);
  int more = vsnprintf(line + used, sizeof line - (size_t)used, format, arguments);
  if (more < 0) return;
  used += more;
  if (used >= (int)sizeof line) used = sizeof line - 1;
  // The kernel shows an unfinished line only when the next one comes.
  line[used++] = '\n';
  if (write(kmsg, line, (size_t)used) < 0) return; // nobody is left to tell
}

void log_problem(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  // Messages of level 3 appear even on a quiet console.
  write_line(3, format, arguments);
  va_end(arguments);
}

void log_note(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_line(6, format, arguments);
  va_end(arguments);
}
