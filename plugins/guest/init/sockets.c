// Ends TCP connections of an address that the machine has lost. Nobody answers on them any more, and a program without a time limit of its own would wait for
// a quarter of an hour.
#include "sockets.h"
#include "log.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// The kernel fills an answer to a dump up to this size.
enum { ANSWER_MAX = 32768 };

struct request {
  struct nlmsghdr header;
  struct inet_diag_req_v2 body;
};

static bool ask(int fd, uint16_t type, uint16_t flags, const struct inet_diag_req_v2 *body) {
  struct request request = { .header = { .nlmsg_len = sizeof request, .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags }, .body = *body };
  return send(fd, &request, sizeof request, 0) == (ssize_t)sizeof request;
}

// An IPv6 socket can have an IPv4 connection.
static bool comes_from(const struct inet_diag_msg *socket, uint32_t address) {
  const uint32_t *source = socket->id.idiag_src;
  if (socket->idiag_family == AF_INET) return source[0] == address;
  return source[0] == 0 && source[1] == 0 && source[2] == htonl(0xffff) && source[3] == address;
}

static void end_one(int fd, const struct inet_diag_msg *socket) {
  struct inet_diag_req_v2 body = { .sdiag_family = socket->idiag_family, .sdiag_protocol = IPPROTO_TCP, .id = socket->id };
  ask(fd, SOCK_DESTROY, 0, &body);
}

// One answer of a dump; false after the last.
static bool read_answer(int list, int end, uint32_t address) {
  static uint8_t answer[ANSWER_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
  ssize_t received = recv(list, answer, sizeof answer, 0);
  if (received <= 0) return received < 0 && errno == EINTR;
  int left = (int)received;
  for (struct nlmsghdr *message = (struct nlmsghdr *)answer; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
    if (message->nlmsg_type == NLMSG_DONE) return false;
    if (message->nlmsg_type == NLMSG_ERROR) {
      const struct nlmsgerr *error = NLMSG_DATA(message);
      log_problem("connections of an old address stay: %s", strerror(-error->error));
      return false;
    }
    const struct inet_diag_msg *socket = NLMSG_DATA(message);
    if (comes_from(socket, address)) end_one(end, socket);
  }
  return true;
}

void sockets_end(uint32_t address) {
  int list = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  // A socket of its own, so that errors about a connection that could not be ended do not mix with the dump.
  int end = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  const int families[] = { AF_INET, AF_INET6 };
  for (int i = 0; i < 2 && list >= 0 && end >= 0; i++) {
    struct inet_diag_req_v2 body = { .sdiag_family = (uint8_t)families[i], .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~(1U << TCP_LISTEN | 1U << TCP_TIME_WAIT) };
    if (!ask(list, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &body)) log_problem("connections of an old address stay: %s", strerror(errno));
    else while (read_answer(list, end, address));
  }
  if (list >= 0) close(list);
  if (end >= 0) close(end);
}
