// The kinds listen, accept and connect, with programs that are this test itself: connections, credit, half-closing, cancelling, limits.
#include "check.h"
#include "client.h"
#include "clock.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct client client;
static struct answer answer;

static struct sockaddr_in address_of(uint16_t port) {
  return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

// A socket that is bound to a free port, or to this one; -1 when it is taken.
static int bound(uint16_t *port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = address_of(*port);
  socklen_t length = sizeof address;
  if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || getsockname(fd, (struct sockaddr *)&address, &length) < 0) {
    close(fd);
    return -1;
  }
  *port = ntohs(address.sin_port);
  return fd;
}

static uint16_t free_port(void) {
  uint16_t port = 0;
  close(bound(&port));
  return port;
}

static int program(uint16_t port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = address_of(port);
  struct timeval limit = { .tv_sec = 5 };
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

// Whether the channel's next frame is the empty DATA that says that it has begun.
static bool begun(uint32_t channel) {
  bool ended = client_frame(&client, channel, &answer, 5000) != FRAME_DATA || answer.length[1] != 0;
  answer_free(&answer);
  return !ended;
}

static bool silent(uint32_t channel) {
  bool none = client_frame(&client, channel, &answer, 150) < 0;
  answer_free(&answer);
  return none;
}

static bool refused(uint32_t channel, uint64_t error) {
  client_answer(&client, channel, &answer, true, 5000);
  bool good = answer.ended && fields_number(&answer.fields, TAG_ERRNO, 0) == error;
  answer_free(&answer);
  return good;
}

static uint32_t ask(const char *kind, uint16_t port) {
  return client_open(&client, kind, TAG_PORT, (long)port, 0);
}

static void before_run(void) {
  check(refused(ask("listen", free_port()), EAGAIN), "before the workload nobody listens");
  check(refused(ask("connect", free_port()), EAGAIN), "nor is anybody called");
}

static void refusals(void) {
  uint16_t port = 0;
  int other = bound(&port);
  listen(other, 1);
  check(refused(ask("listen", port), EADDRINUSE), "a port that a program has is refused");
  close(other);
  check(refused(ask("accept", port), EINVAL), "nobody can wait for a port that is not listened on");
  check(refused(ask("listen", 0), EINVAL) && refused(client_open(&client, "listen", 0), EINVAL) && refused(client_open(&client, "listen", TAG_PORT, 70000L, 0), EINVAL), "a port is 1 to 65535");
}

static void conversation(void) {
  uint16_t port = free_port();
  uint32_t listener = ask("listen", port);
  check(begun(listener), "the guest says that it listens");
  check(refused(ask("listen", port), EADDRINUSE), "once only");
  int first = program(port);
  check(first >= 0 && silent(listener), "a program can connect before anybody waits for it");
  uint32_t one = ask("accept", port), two = ask("accept", port);
  check(begun(one), "the connection comes to the channel that has waited longest");
  check(silent(two), "and to no other");
  check(write(first, "question", 8) == 8 && client_until(&client, one, &answer, "question", 8, true), "what the program says reaches the host");
  answer_free(&answer);
  client_send(&client, FRAME_DATA, one, STREAM_IN, "answer", 6);
  char text[16] = "";
  check(recv(first, text, 6, MSG_WAITALL) == 6 && strcmp(text, "answer") == 0, "and what the host says reaches the program");
  client_send(&client, FRAME_EOF, one, STREAM_IN, NULL, 0);
  check(recv(first, text, 1, 0) == 0, "the host's end is an end for the program");
  check(write(first, "more", 4) == 4 && shutdown(first, SHUT_WR) == 0, "which may still speak");
  client_answer(&client, one, &answer, true, 5000);
  check(answer.ended && answer.fields.count == 0 && strcmp(answer.bytes[1], "more") == 0 && answer.eof[1], "when both have ended, the channel has");
  answer_free(&answer);
  close(first);

  int second = program(port);
  check(begun(two), "the next connection comes to the next channel");
  shutdown(second, SHUT_WR);
  check(client_frame(&client, two, &answer, 5000) == FRAME_EOF, "the program's end comes first this time");
  answer_free(&answer);
  client_send(&client, FRAME_DATA, two, STREAM_IN, "late", 4);
  client_send(&client, FRAME_EOF, two, STREAM_IN, NULL, 0);
  check(recv(second, text, 4, MSG_WAITALL) == 4 && memcmp(text, "late", 4) == 0 && recv(second, text, 1, 0) == 0, "and the host may still speak");
  check(refused(two, 0), "the channel ends well");
  close(second);

  uint32_t waiting = ask("accept", port);
  client_control(&client, listener, "cancel", 0);
  check(refused(waiting, ECANCELED) && refused(listener, 0), "with the port, those end that wait for it");
  check(program(port) < 0, "and nobody can connect any more");
  listener = ask("listen", port);
  check(begun(listener), "the port can be listened on again at once");
  client_control(&client, listener, "cancel", 0);
  check(refused(listener, 0), "and left again");
}

// A connection, its program, and its channel.
static int talk(uint32_t *listener, uint32_t *channel) {
  uint16_t port = free_port();
  *listener = ask("listen", port);
  if (!begun(*listener)) return -1;
  *channel = ask("accept", port);
  int fd = program(port);
  return begun(*channel) ? fd : -1;
}

static void leave(uint32_t listener) {
  client_control(&client, listener, "cancel", 0);
  client_answer(&client, listener, &answer, true, 5000);
  answer_free(&answer);
}

static void credit(void) {
  uint32_t listener, channel;
  int fd = talk(&listener, &channel);
  static char bytes[STREAM_CREDIT * 2];
  memset(bytes, 'x', sizeof bytes);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  ssize_t sent = send(fd, bytes, sizeof bytes, 0);
  check(sent > 0, "a program sends what the socket takes");
  size_t length = 0;
  while (client_frame(&client, channel, &answer, 300) == FRAME_DATA) {
    length += answer.length[1];
    answer_free(&answer);
    ssize_t more = send(fd, bytes, sizeof bytes, 0);
    if (more > 0) sent += more;
  }
  answer_free(&answer);
  check(length == STREAM_CREDIT, "the host gets as much as it has granted");
  client_credit(&client, channel, STREAM_OUT, 1000);
  check(client_frame(&client, channel, &answer, 5000) == FRAME_DATA && answer.length[1] == 1000, "and no more than that");
  answer_free(&answer);
  fcntl(fd, F_SETFL, 0);

  for (int i = 0; i < 4; i++) client_send(&client, FRAME_DATA, channel, STREAM_IN, bytes, STREAM_CREDIT / 4);
  size_t credited = 0, got = 0;
  while (got < STREAM_CREDIT) {
    ssize_t piece = recv(fd, bytes, sizeof bytes, 0);
    if (piece <= 0) break;
    got += (size_t)piece;
  }
  for (bool more = true; more && credited < STREAM_CREDIT; answer_free(&answer)) {
    more = client_frame(&client, channel, &answer, 1000) == FRAME_CREDIT;
    credited += answer.credited;
  }
  check(got == STREAM_CREDIT && credited > STREAM_CREDIT - 65536, "what the program has read is granted again");
  // More than the kernel keeps for a program that does not read.
  for (int i = 0; i < 400; i++) client_send(&client, FRAME_DATA, channel, STREAM_IN, bytes, STREAM_CREDIT / 4);
  check(refused(channel, EPROTO), "a host that sends more than it may loses the connection");
  close(fd);
  leave(listener);
}

static void endings(void) {
  uint32_t listener, channel;
  char byte;
  int fd = talk(&listener, &channel);
  client_control(&client, channel, "cancel", 0);
  check(refused(channel, ECANCELED), "a connection can be cancelled");
  check(recv(fd, &byte, 1, 0) < 0 && errno == ECONNRESET, "which its program sees as a reset");
  close(fd);
  leave(listener);

  fd = talk(&listener, &channel);
  struct linger hard = { .l_onoff = 1, .l_linger = 0 };
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  close(fd);
  client_answer(&client, channel, &answer, true, 5000);
  check(answer.ended && fields_number(&answer.fields, TAG_ERRNO, 0) == ECONNRESET && !answer.eof[1], "a program that is cut off is told apart from one that ends");
  answer_free(&answer);
  leave(listener);

  fd = talk(&listener, &channel);
  close(fd);
  check(client_frame(&client, channel, &answer, 5000) == FRAME_EOF, "a program that closes ends its side");
  answer_free(&answer);
  static char bytes[60000];
  for (int i = 0; i < 20; i++) client_send(&client, FRAME_DATA, channel, STREAM_IN, bytes, i < 4 ? sizeof bytes : 1);
  client_answer(&client, channel, &answer, true, 5000);
  check(answer.ended && answer.fields.count == 0, "and what the host still says is dropped");
  answer_free(&answer);
  leave(listener);

  fd = talk(&listener, &channel);
  uint32_t early = ask("accept", 1);
  check(refused(early, EINVAL), "other ports are not meant");
  check(client_sync(&client) != NULL, "the host comes anew");
  check(recv(fd, &byte, 1, 0) < 0 && errno == ECONNRESET, "and connections of before are gone");
  close(fd);
}

static void limits(void) {
  uint16_t port = free_port();
  uint32_t listener = ask("listen", port);
  check(begun(listener), "it listens");
  uint32_t last = 0;
  for (int i = 0; i < 63; i++) last = ask("accept", port);
  check(silent(last), "64 channels are there");
  check(refused(ask("accept", port), EAGAIN), "and no more");
  client_exec(&client, &answer, "", "true");
  check(fields_number(&answer.fields, TAG_ERRNO, 0) == EAGAIN, "for commands neither");
  answer_free(&answer);
  client_send(&client, FRAME_DATA, last, STREAM_IN, "x", 1);
  check(refused(last, EPROTO), "nothing can be said to nobody");
  client_exec(&client, &answer, "", "ls -l /proc/self/fd | grep -c socket");
  check(strcmp(answer.bytes[1], "0\n") == 0, "commands inherit none of it");
  answer_free(&answer);
  client_control(&client, listener, "cancel", 0);
  check(refused(listener, 0), "all of them end with the port");
  client_exec(&client, &answer, "", "true");
  check(answer.ended && fields_find(&answer.fields, TAG_ERRNO) == NULL, "and there is room again");
  answer_free(&answer);
}

// The calls of the host to a program, which is this test.
static void calls(void) {
  uint16_t port = 0;
  int server = bound(&port);
  uint32_t channel = ask("connect", port);
  check(refused(channel, ECONNREFUSED), "where nobody listens a call is refused");
  listen(server, 8);
  channel = ask("connect", port);
  int fd = accept(server, NULL, NULL);
  check(fd >= 0 && begun(channel), "a program that listens is called, and the host is told");
  client_send(&client, FRAME_DATA, channel, STREAM_IN, "ask", 3);
  client_send(&client, FRAME_EOF, channel, STREAM_IN, NULL, 0);
  char text[8] = "";
  check(recv(fd, text, 4, MSG_WAITALL) == 3 && strcmp(text, "ask") == 0, "what the host says reaches the program, and its end");
  check(write(fd, "told", 4) == 4 && shutdown(fd, SHUT_WR) == 0, "the program answers");
  client_answer(&client, channel, &answer, true, 5000);
  check(answer.ended && answer.fields.count == 0 && strcmp(answer.bytes[1], "told") == 0 && answer.eof[1], "and that reaches the host");
  answer_free(&answer);
  close(fd);

  channel = client_open(&client, "connect", TAG_PORT, (long)port, TAG_ADDRESS, "127.0.0.2", 0);
  check(refused(channel, ECONNREFUSED), "another address is another place");
  check(refused(client_open(&client, "connect", TAG_PORT, (long)port, TAG_ADDRESS, "localhost", 0), EINVAL), "a name is no address");
  check(refused(ask("connect", 0), EINVAL) && refused(client_open(&client, "connect", TAG_PORT, 65536L, 0), EINVAL), "a port is 1 to 65535");

  channel = ask("connect", port);
  check(begun(channel), "the kernel takes a call for a program that is busy");
  client_control(&client, channel, "cancel", 0);
  check(refused(channel, ECANCELED), "a call can be cancelled");
  close(server);
}

int main(void) {
  client_start(&client);
  client_sync(&client);
  before_run();
  check(client_run_sleeper(&client), "a program runs");
  refusals();
  conversation();
  credit();
  endings();
  calls();
  limits();
  client_open(&client, "shutdown", 0);
  check(client_join(&client, 10000), "the agent ends without a fault");
  client_end(&client);

  client_start(&client);
  client_sync(&client);
  uint32_t run = client_open(&client, "run", TAG_ARGV, "sleep", TAG_ARGV, "1000", TAG_ENV, "PATH=/usr/bin:/bin", TAG_CWD, "/", TAG_AGENT, 0L, 0);
  client_answer(&client, run, &answer, true, 5000);
  answer_free(&answer);
  check(refused(ask("listen", free_port()), EOPNOTSUPP), "without the agent nobody listens");
  check(refused(ask("connect", free_port()), EOPNOTSUPP), "nor is anybody called");
  client_open(&client, "shutdown", 0);
  check(client_join(&client, 10000), "the agent ends without a fault");
  client_end(&client);
  return checks_end();
}
