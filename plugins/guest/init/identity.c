// Gives this machine its own time, randomness, name and address: at a cold start, and for each clone of a memory image.
#include "identity.h"
#include "log.h"
#include "network.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { ENTROPY_MAX = 256 };

static void set_clock(uint64_t realtime_ns) {
  struct timespec now = { (time_t)(realtime_ns / 1000000000), (long)(realtime_ns % 1000000000) };
  if (realtime_ns != 0 && clock_settime(CLOCK_REALTIME, &now) < 0) log_problem("clock: %s", strerror(errno));
}

// Reseeding as well, since clones share the generator's state and would go on with the same numbers for minutes.
static void add_entropy(const uint8_t *bytes, size_t length) {
  struct {
    struct rand_pool_info info;
    uint8_t bytes[ENTROPY_MAX];
  } pool;
  if (length == 0) return;
  if (length > ENTROPY_MAX) length = ENTROPY_MAX;
  int fd = open("/dev/random", O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return;
  pool.info.entropy_count = (int)length * 8;
  pool.info.buf_size = (int)length;
  memcpy(pool.info.buf, bytes, length);
  if (ioctl(fd, RNDADDENTROPY, &pool) < 0 || ioctl(fd, RNDRESEEDCRNG) < 0) log_problem("entropy: %s", strerror(errno));
  close(fd);
}

void identity_apply(const struct identity *identity) {
  set_clock(identity->realtime_ns);
  add_entropy(identity->entropy, identity->entropy_length);
  if (identity->hostname != NULL && sethostname(identity->hostname, strlen(identity->hostname)) < 0) {
    log_problem("hostname: %s", strerror(errno));
  }
  network_apply(&identity->network);
}
