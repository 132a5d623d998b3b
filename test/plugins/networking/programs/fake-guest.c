// Stands in for a VM behind a TAP.
//   fake-guest TAP raw              hex frames from stdin go in; what comes out is printed as hex
//   fake-guest TAP link NAMESPACE   joins the TAP to a new device eth0 in another namespace, whose sockets are then the guest's
// It works in the namespace that it is started in, prints "ready", and ends with its standard input.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static int open_tap(const char *name) {
  int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  if (fd < 0) fail("/dev/net/tun");
  struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI };
  snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
  if (ioctl(fd, TUNSETIFF, &request) < 0) fail("TUNSETIFF");
  return fd;
}

// As much as there is now; a full device drops, as a wire does.
static void pump(int from, int to) {
  char frame[70000];
  for (int count = 0; count < 64; count++) {
    ssize_t length = read(from, frame, sizeof frame);
    if (length <= 0) return;
    if (write(to, frame, length) < 0 && count == 0) return;
  }
}

static int hex_digit(char digit) {
  return digit >= 'a' ? digit - 'a' + 10 : digit - '0';
}

static void send_lines(int tap, const char *text, ssize_t size) {
  static unsigned char frame[70000];
  static size_t digits;
  for (ssize_t at = 0; at < size; at++) {
    if (text[at] != '\n') {
      unsigned char *byte = &frame[digits / 2 % sizeof frame];
      *byte = (unsigned char)(digits % 2 == 0 ? hex_digit(text[at]) << 4 : *byte | hex_digit(text[at]));
      digits++;
      continue;
    }
    if (write(tap, frame, digits / 2) < 0) perror("write");
    digits = 0;
  }
}

static void print_frames(int tap) {
  unsigned char frame[70000];
  for (ssize_t length; (length = read(tap, frame, sizeof frame)) > 0;) {
    for (ssize_t at = 0; at < length; at++) printf("%02x", frame[at]);
    printf("\n");
  }
  fflush(stdout);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  int tap = open_tap(argv[1]);
  int other = -1;
  if (strcmp(argv[2], "link") == 0) {
    int namespace = open(argv[3], O_RDONLY | O_CLOEXEC);
    if (namespace < 0 || setns(namespace, CLONE_NEWNET) < 0) fail(argv[3]);
    other = open_tap("eth0");
  }
  printf("ready\n");
  fflush(stdout);
  struct pollfd polled[3] = { { .fd = 0, .events = POLLIN }, { .fd = tap, .events = POLLIN }, { .fd = other, .events = POLLIN } };
  for (;;) {
    if (poll(polled, 3, -1) < 0) fail("poll");
    if (polled[0].revents != 0) {
      static char text[200000];
      ssize_t size = read(0, text, sizeof text);
      if (size <= 0) return 0;
      send_lines(tap, text, size);
    }
    // The TAP has been removed: the VM goes on without its network.
    if ((polled[1].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) polled[1].fd = -1;
    if ((polled[1].revents & POLLIN) != 0) {
      if (other >= 0) pump(tap, other);
      else print_frames(tap);
    }
    if ((polled[2].revents & POLLIN) != 0) pump(other, tap);
  }
}
