// How much the other end of a stream has acknowledged as written to its file.
#include "acknowledged.h"
#include <errno.h>
#include <unistd.h>

static bool take(struct acknowledged *acknowledged, uint64_t sent) {
  uint64_t total = 0;
  for (int i = 7; i >= 0; i--) total = total << 8 | acknowledged->bytes[i];
  acknowledged->have = 0;
  if (total < acknowledged->total || total > sent) return false;
  acknowledged->total = total;
  return true;
}

bool acknowledged_read(struct acknowledged *acknowledged, int fd, uint64_t sent) {
  for (;;) {
    ssize_t got = read(fd, acknowledged->bytes + acknowledged->have, sizeof acknowledged->bytes - acknowledged->have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    acknowledged->have += (size_t)got;
    if (acknowledged->have == sizeof acknowledged->bytes && !take(acknowledged, sent)) return false;
  }
}
