// What a hostile program in a guest does with sockets, each answer on a line of its own.
//   probe tcp [from ADDRESS] ADDRESS:PORT...   "ADDRESS:PORT open|ERRNO|silence MS WORDS": how a connection goes, and what comes by itself
//   probe udp [from ADDRESS] ADDRESS:PORT...   the same for a datagram
//   probe dns ADDRESS TYPE NAME                "rcode answers": how a question about a name is answered
//   probe burst ADDRESS COUNT SUFFIX           asks for COUNT different names and prints how many answers came
//   probe frames DEVICE HEX...                 puts whole frames on the wire
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_MS = 4000, WORDS_MS = 700, DNS_PORT = 53 };

static long now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static struct sockaddr_in address_of(const char *text, int port) {
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
  if (inet_pton(AF_INET, text, &address.sin_addr) != 1) {
    fprintf(stderr, "no address: %s\n", text);
    exit(2);
  }
  return address;
}

static struct sockaddr_in target_of(const char *text) {
  char copy[64];
  snprintf(copy, sizeof copy, "%s", text);
  char *colon = strchr(copy, ':');
  if (colon == NULL) exit(2);
  *colon = 0;
  return address_of(copy, atoi(colon + 1));
}

static int open_from(int type, const char *from) {
  int fd = socket(AF_INET, type | SOCK_NONBLOCK, 0);
  if (fd < 0) fail("socket");
  if (from == NULL) return fd;
  struct sockaddr_in own = address_of(from, 0);
  if (bind(fd, (struct sockaddr *)&own, sizeof own) < 0) fail("bind");
  return fd;
}

// What has come, made printable; -1 and errno when that is an error.
static ssize_t read_words(int fd, int wait_ms, char *words, size_t size) {
  struct pollfd polled = { .fd = fd, .events = POLLIN };
  words[0] = 0;
  if (poll(&polled, 1, wait_ms) != 1) return 0;
  ssize_t length = recv(fd, words, size - 1, 0);
  words[length < 0 ? 0 : length] = 0;
  for (char *at = words; *at != 0; at++) if (*at < ' ' || *at > '~') *at = ' ';
  return length;
}

static const char *outcome_of(int error) {
  return error == 0 ? "open" : strerrorname_np(error);
}

static void try_tcp(const char *from, const char *text) {
  struct sockaddr_in target = target_of(text);
  int fd = open_from(SOCK_STREAM, from);
  long began = now_ms();
  const char *outcome = "open";
  char words[512] = "";
  if (connect(fd, (struct sockaddr *)&target, sizeof target) < 0 && errno != EINPROGRESS) {
    outcome = outcome_of(errno);
  } else {
    struct pollfd polled = { .fd = fd, .events = POLLOUT };
    int error = 0;
    socklen_t size = sizeof error;
    if (poll(&polled, 1, LIMIT_MS) != 1) outcome = "silence";
    else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) fail("getsockopt");
    else outcome = outcome_of(error);
  }
  long took = now_ms() - began;
  if (strcmp(outcome, "open") == 0) read_words(fd, WORDS_MS, words, sizeof words);
  printf("%s %s %ld %s\n", text, outcome, took, words);
  close(fd);
}

static void try_udp(const char *from, const char *text) {
  struct sockaddr_in target = target_of(text);
  int fd = open_from(SOCK_DGRAM, from);
  long began = now_ms();
  const char *outcome = "silence";
  char words[512] = "";
  struct pollfd polled = { .fd = fd, .events = POLLIN };
  if (connect(fd, (struct sockaddr *)&target, sizeof target) < 0 || send(fd, "question", 8, 0) < 0) {
    outcome = outcome_of(errno);
  } else if (poll(&polled, 1, LIMIT_MS / 2) == 1) {
    outcome = read_words(fd, 0, words, sizeof words) < 0 ? outcome_of(errno) : "open";
  }
  printf("%s %s %ld %s\n", text, outcome, now_ms() - began, words);
  close(fd);
}

static size_t question(unsigned char *packet, int type, const char *name, int id) {
  unsigned char header[12] = { (unsigned char)(id >> 8), (unsigned char)id, 1, 0, 0, 1 };
  memcpy(packet, header, 12);
  unsigned char *at = packet + 12;
  while (*name != 0) {
    size_t length = strcspn(name, ".");
    *at++ = (unsigned char)length;
    memcpy(at, name, length);
    at += length;
    name += length + (name[length] == '.');
  }
  unsigned char end[5] = { 0, (unsigned char)(type >> 8), (unsigned char)type, 0, 1 };
  memcpy(at, end, 5);
  return (size_t)(at + 5 - packet);
}

static void ask(const char *server, int type, const char *name) {
  struct sockaddr_in target = address_of(server, DNS_PORT);
  int fd = open_from(SOCK_DGRAM, NULL);
  unsigned char packet[512];
  size_t length = question(packet, type, name, 0x1234);
  struct pollfd polled = { .fd = fd, .events = POLLIN };
  if (connect(fd, (struct sockaddr *)&target, sizeof target) < 0 || send(fd, packet, length, 0) < 0) fail("send");
  ssize_t got = poll(&polled, 1, LIMIT_MS) == 1 ? recv(fd, packet, sizeof packet, 0) : 0;
  if (got < 12) printf("silence\n");
  else printf("%d %d\n", packet[3] & 15, packet[6] << 8 | packet[7]);
  close(fd);
}

static void burst(const char *server, int count, const char *suffix) {
  struct sockaddr_in target = address_of(server, DNS_PORT);
  int fd = open_from(SOCK_DGRAM, NULL);
  if (connect(fd, (struct sockaddr *)&target, sizeof target) < 0) fail("connect");
  unsigned char packet[512];
  int answers = 0;
  for (int at = 0; at < count; at++) {
    char name[200];
    snprintf(name, sizeof name, "%08x%08x.%s", (unsigned)random(), (unsigned)at, suffix);
    size_t length = question(packet, 1, name, at);
    if (send(fd, packet, length, 0) < 0 && errno != EAGAIN) fail("send");
    while (recv(fd, packet, sizeof packet, 0) > 0) answers++;
  }
  struct pollfd polled = { .fd = fd, .events = POLLIN };
  while (poll(&polled, 1, WORDS_MS) == 1 && recv(fd, packet, sizeof packet, 0) > 0) answers++;
  printf("%d\n", answers);
}

static void send_frames(const char *device, char **frames) {
  int fd = socket(AF_PACKET, SOCK_RAW, 0);
  if (fd < 0) fail("packet socket");
  struct sockaddr_ll target = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(device), .sll_halen = 6 };
  int sent = 0;
  for (; *frames != NULL; frames++, sent++) {
    unsigned char frame[1600];
    size_t length = strlen(*frames) / 2;
    for (size_t at = 0; at < length && at < sizeof frame; at++) {
      unsigned byte;
      if (sscanf(*frames + 2 * at, "%2x", &byte) != 1) exit(2);
      frame[at] = (unsigned char)byte;
    }
    if (sendto(fd, frame, length, 0, (struct sockaddr *)&target, sizeof target) < 0) fail("sendto");
  }
  printf("%d\n", sent);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  const char *what = argv[1];
  if (strcmp(what, "dns") == 0 && argc == 5) return ask(argv[2], atoi(argv[3]), argv[4]), 0;
  if (strcmp(what, "burst") == 0 && argc == 5) return burst(argv[2], atoi(argv[3]), argv[4]), 0;
  if (strcmp(what, "frames") == 0) return send_frames(argv[2], argv + 3), 0;
  int has_from = strcmp(argv[2], "from") == 0;
  for (int at = has_from ? 4 : 2; at < argc; at++) (strcmp(what, "udp") == 0 ? try_udp : try_tcp)(has_from ? argv[3] : NULL, argv[at]);
  return 0;
}
