// The connection to a host whose VMM has no virtio-serial: the host connects to this guest's agent over vsock, and this guest connects to the host to hand over output and report.
#include "vsock.h"
#include "log.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <linux/vm_sockets.h>

// PROTOCOL.md defines them; the host's drivers use the same.
enum { AGENT_PORT = 1024, OUTPUT_PORT = 1025, REPORT_PORT = 1026 };

// The host connects again as soon as it has lost its connection: one may wait while another is being closed.
enum { BACKLOG = 4 };

enum { CONNECT_MS = 500 };

int vsock_listen(void) {
  struct sockaddr_vm address = { .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY, .svm_port = AGENT_PORT };
  int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, BACKLOG) == 0) return fd;
  log_problem("vsock: %s", strerror(errno));
  if (fd >= 0) close(fd);
  return -1;
}

static int call_host(unsigned port) {
  struct sockaddr_vm address = { .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_HOST, .svm_port = port };
  struct timeval limit = { .tv_usec = CONNECT_MS * 1000 };
  int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &limit, sizeof limit);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0) return fd;
  close(fd);
  return -1;
}

int vsock_open_output(void) {
  return call_host(OUTPUT_PORT);
}

int vsock_open_report(void) {
  return call_host(REPORT_PORT);
}
