// The report of why the program ended, for a file that the host trusts.
#include "report.h"
#include "acknowledged.h"
#include "clock.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RETRY_MS = 20 };

size_t report_format(const struct ending *ending, char text[REPORT_MAX]) {
  char error[sizeof ending->error];
  size_t length = 0;
  // One line of plain text: the message may quote what an image says.
  for (; length < sizeof error - 1 && ending->error[length] != 0; length++) {
    unsigned char character = (unsigned char)ending->error[length];
    error[length] = character < 32 || character == 127 ? ' ' : (char)character;
  }
  error[length] = 0;
  int used = snprintf(text, REPORT_MAX, "version=1\nexit_code=%d\nsignal=%d\noom=%d\n%s%s%send\n", ending->exit_code,
                      ending->signal, ending->oom ? 1 : 0, length > 0 ? "error=" : "", error, length > 0 ? "\n" : "");
  return (size_t)used;
}

bool report_write(int fd, const struct ending *ending, int limit_ms) {
  char text[REPORT_MAX];
  size_t length = report_format(ending, text), done = 0;
  uint64_t end = clock_ms() + (uint64_t)limit_ms;
  while (fd >= 0 && done < length) {
    ssize_t written = write(fd, text + done, length - done);
    if (written > 0) {
      done += (size_t)written;
      continue;
    }
    if (written < 0 && errno != EAGAIN && errno != EINTR) return false;
    uint64_t now = clock_ms();
    struct pollfd wait = { .fd = fd, .events = POLLOUT };
    if (now >= end || poll(&wait, 1, (int)(end - now)) < 0) return false;
    // A port without a host is "hung up", and poll returns at once: waiting would not help.
    if ((wait.revents & POLLOUT) == 0 && wait.revents != 0) return false;
  }
  return done == length;
}

static bool acknowledged_by(int fd, uint64_t length, uint64_t end) {
  struct acknowledged acknowledged = { 0 };
  while (acknowledged_read(&acknowledged, fd, length)) {
    if (acknowledged.total == length) return true;
    uint64_t now = clock_ms();
    struct pollfd wait = { .fd = fd, .events = POLLIN };
    if (now >= end || poll(&wait, 1, (int)(end - now)) < 0) return false;
  }
  return false;
}

bool report_hand_over(int (*open)(void), const struct ending *ending, int limit_ms) {
  char text[REPORT_MAX];
  uint64_t length = report_format(ending, text), end = clock_ms() + (uint64_t)limit_ms;
  for (uint64_t now = clock_ms(); now < end; now = clock_ms()) {
    int fd = open();
    bool done = fd >= 0 && report_write(fd, ending, (int)(end - now)) && acknowledged_by(fd, length, end);
    if (fd >= 0) close(fd);
    if (done) return true;
    poll(NULL, 0, RETRY_MS);
  }
  return false;
}
