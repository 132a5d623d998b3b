// Fuzzes what reads foreign bytes: the frame parser, fields, workloads, the image's account files, and the agent's dispatch.
// With clang it is a libFuzzer target; otherwise its own mutator runs it: fuzz [seconds] [seed].
#include "accounts.h"
#include "agent.h"
#include "cgroup.h"
#include "environment.h"
#include "frame.h"
#include "fuzz-inputs.h"
#include "protocol.h"
#include "names.h"
#include "network.h"
#include "report.h"
#include "trust-text.h"
#include "workload.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void require(bool held, const char *what) {
  if (held) return;
  fprintf(stderr, "broken: %s\n", what);
  abort();
}

// --- the frame parser: any cut of the same bytes gives the same frames ---

struct trace {
  uint64_t hash;
  unsigned long syncs, frames;
};

static void mix(struct trace *trace, const void *bytes, size_t length) {
  const uint8_t *at = bytes;
  for (size_t i = 0; i < length; i++) trace->hash = (trace->hash ^ at[i]) * 0x100000001B3;
}

static void on_sync(void *owner, const uint8_t sync[SYNC_SIZE]) {
  struct trace *trace = owner;
  trace->syncs++;
  mix(trace, sync, SYNC_SIZE);
}

static void on_frame(void *owner, const struct frame *frame) {
  struct trace *trace = owner;
  trace->frames++;
  require(frame->length <= FRAME_PAYLOAD_MAX && frame->stream <= STREAM_ERROR && frame->type <= FRAME_CONTROL, "a frame is in its limits");
  mix(trace, &frame->length, sizeof frame->length);
  mix(trace, &frame->channel, sizeof frame->channel);
  mix(trace, frame->payload, frame->length);
}

static const struct frame_events events = { on_sync, on_frame };

static void fuzz_frames(const uint8_t *data, size_t size) {
  static struct frame_parser one, other;
  struct trace whole = { .hash = 1 }, pieces = { .hash = 1 };
  if (size == 0) return;
  size_t step = data[0] % 37 + 1;
  frame_parser_reset(&one);
  frame_parser_reset(&other);
  frame_parser_feed(&one, data, size, &events, &whole);
  for (size_t at = 0; at < size; at += step) {
    frame_parser_feed(&other, data + at, size - at < step ? size - at : step, &events, &pieces);
  }
  require(whole.hash == pieces.hash && whole.syncs == pieces.syncs && whole.frames == pieces.frames, "every cut gives the same frames");
}

// --- fields and workloads ---

static void fuzz_fields(const uint8_t *data, size_t size) {
  struct fields fields;
  uint8_t *copy = malloc(size + 1);
  memcpy(copy, data, size);
  if (fields_parse(copy, size, &fields) == 0) {
    char **argv = fields_list(&fields, TAG_ARGV);
    for (size_t i = 0; argv[i] != NULL; i++) require(strlen(argv[i]) <= size, "a string ends inside of its payload");
    free(argv);
    uint8_t *again = malloc(size + 1);
    struct writer writer = { .bytes = again, .capacity = size };
    for (size_t i = 0; i < fields.count; i++) write_field(&writer, fields.items[i].tag, fields.items[i].bytes, fields.items[i].length);
    require(!writer.overflow && writer.length == size && memcmp(again, data, size) == 0, "parsed fields are written as they were");
    free(again);
    fields_free(&fields);
  }
  free(copy);
}

static void fuzz_workload(const uint8_t *data, size_t size) {
  struct workload workload;
  struct failure failure;
  uint32_t address, mask;
  uint8_t mac[6];
  if (!workload_parse(&workload, data, size, &failure)) {
    require(failure.message[0] != 0 && memchr(failure.message, 0, sizeof failure.message) != NULL, "a refusal says why");
    return;
  }
  require(workload.argv[0] != NULL && workload.volume_count <= WORKLOAD_MOUNTS_MAX, "a workload is in its limits");
  for (size_t i = 0; i < workload.volume_count; i++) require(workload.volumes[i].path[0] == '/', "mount points are absolute");
  const struct network *network = &workload.identity.network;
  require(network->address[0] == 0 || network_parse_address(network->address, &address, &mask), "an address that was taken is one");
  require(network->mac[0] == 0 || network_parse_mac(network->mac, mac), "so is a hardware address");
  char text[2048];
  require(hosts_format(&workload.identity, text, sizeof text) && resolv_format(network, text, sizeof text), "and all of it fits into its files");
  workload_free(&workload);
}

// --- text out of images ---

// Our blocks go in and come out of whatever a bundle holds.
static void fuzz_trust(const uint8_t *data, size_t size) {
  static const char certificate[] = "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n";
  const char *const known[] = { certificate, NULL };
  size_t block_length;
  char *block = trust_block(certificate, sizeof certificate - 1, &block_length);
  char *text = malloc(size + 1 + block_length), *once = malloc(size + 1);
  memcpy(text, data, size);
  size_t kept = trust_strip(text, size, known);
  require(kept <= size, "what is taken out makes it shorter");
  memcpy(once, text, kept);
  size_t open_line = kept > 0 && text[kept - 1] != '\n';
  if (open_line) text[kept] = '\n';
  memcpy(text + kept + open_line, block, block_length);
  require(trust_ends_with(text, kept + open_line + block_length, block, block_length), "a block that was put in is found");
  size_t again = trust_strip(text, kept + open_line + block_length, known);
  // A torn piece before may join with what is put behind it, and go as well.
  require(again <= kept + open_line && memcmp(text, once, again < kept ? again : kept) == 0, "and can be taken out again");
  pem_is_any(text, again);
  if (pem_is_one((const char *)data, size)) require(pem_is_any((const char *)data, size), "one is any");
  free(once);
  free(text);
  free(block);
}

// Cuts the input at zero bytes into three strings.
static void fuzz_accounts(const uint8_t *data, size_t size) {
  static struct account account;
  struct failure failure = { 0 };
  char *text = malloc(size + 3);
  memcpy(text, data, size);
  memset(text + size, 0, 3);
  const char *passwd = text + strlen(text) + 1;
  if (passwd > text + size + 1) passwd = text + size + 1;
  const char *group = passwd + strlen(passwd) + 1;
  if (group > text + size + 2) group = text + size + 2;
  if (account_resolve(text, passwd, group, &account, &failure)) {
    require(account.group_count >= 1 && account.group_count <= ACCOUNT_GROUPS_MAX && account.groups[0] == account.gid, "groups are in their limits");
    require(account.uid <= INT32_MAX && account.gid <= INT32_MAX && account.home[0] == '/', "ids and home are sane");
  } else {
    require(failure.message[0] != 0 && failure.exit_code == 126, "a refusal says why");
  }
  counter_value(text, "oom_kill");
  const char *path = text;
  char candidate[64];
  while (path_next(&path, "x", candidate, sizeof candidate)) require(strlen(candidate) < sizeof candidate, "candidates fit");
  struct ending ending = { .exit_code = (int)size };
  char report[REPORT_MAX];
  snprintf(ending.error, sizeof ending.error, "%s", text);
  size_t length = report_format(&ending, report);
  int lines = 0;
  for (size_t i = 0; i < length; i++) lines += report[i] == '\n';
  require(length <= REPORT_MAX && lines == (ending.error[0] == 0 ? 5 : 6), "a report has its lines and no more");
  free(text);
}

// --- the agent before its workload: everything but `run` must be refused or ignored ---

static bool prepare(const struct workload *workload, struct cgroups *cgroups, struct failure *failure) {
  (void)workload, (void)cgroups;
  return fail(failure, EIO, 255, "no machine here");
}

static bool identify(const struct identity *now, const struct identity *wake, struct failure *failure) {
  (void)now, (void)wake, (void)failure;
  return true;
}

static void finish(void) {
}

static void fuzz_agent(const uint8_t *data, size_t size) {
  static const struct platform platform = { .is_init = false, .prepare = prepare, .identify = identify, .finish = finish };
  static struct agent agent;
  int pair[2];
  char back[4096];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0) return;
  require(agent_init(&agent, &platform, pair[1], -1, -1), "an agent");
  if (size > 0 && send(pair[0], data, size, 0) < 0) size = 0;
  for (int i = 0; i < 4; i++) {
    connection_pump(&agent.connection);
    while (recv(pair[0], back, sizeof back, 0) > 0);
  }
  for (int i = 0; i < CHANNEL_MAX; i++) require(!agent.channels[i].used, "no channel without a workload");
  require(agent.trust.bundle_length <= TRUST_BUNDLE_MAX, "what is held is bounded");
  trust_free(&agent.trust);
  workload_free(&agent.workload);
  queue_free(&agent.connection.out);
  queue_free(&agent.relay.queue);
  close(agent.epoll);
  close(agent.children.fd);
  close(pair[0]);
  close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  switch (data[0] % 16) {
    case 0: fuzz_agent(data + 1, size - 1); break;
    case 1: case 2: case 3: fuzz_fields(data + 1, size - 1); break;
    case 4: case 5: fuzz_workload(data + 1, size - 1); break;
    case 6: fuzz_trust(data + 1, size - 1); break;
    case 7: case 8: case 9: fuzz_accounts(data + 1, size - 1); break;
    default: fuzz_frames(data + 1, size - 1);
  }
  return 0;
}

#ifndef LIBFUZZER

int main(int argc, char **argv) {
  static uint8_t bytes[INPUT_MAX + 512];
  long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 5;
  uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 20240229;
  unsigned long runs = 0;
  make_seeds(seed);
  time_t end = time(NULL) + seconds;
  printf("# seed %llu\n", (unsigned long long)seed);
  fflush(stdout);
  for (; (runs & 255) != 0 || time(NULL) < end; runs++) {
    const struct seed *from = random_seed();
    // An agent costs as much as a hundred of the others.
    if (from->bytes[0] == 0 && random_below(16) != 0) continue;
    memcpy(bytes, from->bytes, from->length);
    size_t length = from->length - 1;
    for (size_t changes = random_below(12); changes > 0; changes--) length = mutate(bytes + 1, length);
    // A block of exactly this size, so that the sanitizer sees a read beyond it.
    uint8_t *input = malloc(length + 1);
    memcpy(input, bytes, length + 1);
    LLVMFuzzerTestOneInput(input, length + 1);
    free(input);
  }
  printf("ok 1 - %lu inputs in %ld s\n1..1\n", runs, seconds);
  return 0;
}

#endif
