// Waits for devices by the kernel's own announcements, so that no sleep is needed.
#include "uevents.h"
#include "clock.h"
#include <errno.h>
#include <linux/netlink.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int open_announcements(void) {
  int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
  struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = 1 };
  if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) < 0) {
    close(fd);
    return -1;
  }
  return fd;
}

// True when a relevant device was announced, or announcements were lost.
static bool heard(int uevents, const char *part) {
  char message[8192];
  bool found = false;
  for (;;) {
    ssize_t length = recv(uevents, message, sizeof message, 0);
    if (length < 0 && errno == ENOBUFS) found = true;
    else if (length < 0) return found;
    else if (memmem(message, (size_t)length, part, strlen(part)) != NULL) found = true;
  }
}

static bool listen_until(int uevents, const char *part, bool (*ready)(void *), void *owner, int limit_ms) {
  uint64_t end = clock_ms() + (uint64_t)limit_ms;
  while (!ready(owner)) {
    do {
      uint64_t now = clock_ms();
      if (now >= end || uevents < 0) return ready(owner);
      struct pollfd wait = { .fd = uevents, .events = POLLIN };
      if (poll(&wait, 1, (int)(end - now)) < 0 && errno != EINTR) return false;
    } while (!heard(uevents, part));
  }
  return true;
}

bool uevents_wait(const char *part, bool (*ready)(void *), void *owner, int limit_ms) {
  if (ready(owner)) return true;
  int uevents = open_announcements();
  bool came = listen_until(uevents, part, ready, owner, limit_ms);
  if (uevents >= 0) close(uevents);
  return came;
}
