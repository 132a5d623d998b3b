// Connects over TCP to this guest's loopback or one of its addresses.
#include "dial.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int dial(const char *address, uint16_t port) {
  struct sockaddr_in target = { .sin_family = AF_INET, .sin_port = htons(port) };
  if (inet_pton(AF_INET, address, &target.sin_addr) != 1) {
    errno = EINVAL;
    return -1;
  }
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&target, sizeof target) == 0 || errno == EINPROGRESS) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// When nobody listens, the kernel may choose the target's port for the socket itself, which then talks to itself.
static int meets_itself(int fd) {
  struct sockaddr_in own = { 0 }, other = { 0 };
  socklen_t own_length = sizeof own, other_length = sizeof other;
  if (getsockname(fd, (struct sockaddr *)&own, &own_length) < 0 || getpeername(fd, (struct sockaddr *)&other, &other_length) < 0) return 0;
  return own.sin_port == other.sin_port && own.sin_addr.s_addr == other.sin_addr.s_addr;
}

int dial_state(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0) return errno;
  if (error != 0) return error;
  struct sockaddr_in other;
  length = sizeof other;
  if (getpeername(fd, (struct sockaddr *)&other, &length) < 0) return errno == ENOTCONN ? EINPROGRESS : errno;
  return meets_itself(fd) ? ECONNREFUSED : 0;
}
