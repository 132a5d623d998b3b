// The report of why the program ended, for a file that the host trusts.
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stddef.h>

enum { REPORT_MAX = 4096 };

struct ending {
  int exit_code;
  int signal;
  bool oom;
  char error[512]; // empty: none
};

// Returns its length; never more than REPORT_MAX.
size_t report_format(const struct ending *ending, char text[REPORT_MAX]);
// Writes it to a non-blocking descriptor within `limit_ms`.
bool report_write(int fd, const struct ending *ending, int limit_ms);

// Opens the connection for it, and returns when the host has acknowledged all of it; retries as often as the time allows.
bool report_hand_over(int (*open)(void), const struct ending *ending, int limit_ms);

#endif
