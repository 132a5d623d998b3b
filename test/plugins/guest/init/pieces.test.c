// The small pure parts: environment and PATH, the byte queue, the report, names and addresses, the workload.
#include "cgroup.h"
#include "check.h"
#include "clock.h"
#include "environment.h"
#include "names.h"
#include "network.h"
#include "protocol.h"
#include "queue.h"
#include "report.h"
#include "workload.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void environments(void) {
  struct environment environment;
  environment_init(&environment, 4);
  char first[] = "A=1", second[] = "B=2", again[] = "A=3", nameless[] = "=x", bare[] = "C";
  environment_set(&environment, first);
  environment_set(&environment, second);
  environment_set(&environment, again);
  environment_set(&environment, nameless);
  environment_set(&environment, bare);
  check(environment.count == 2 && strcmp(environment_get(&environment, "A"), "3") == 0, "a later value replaces an earlier one; what has no name is dropped");
  environment_default(&environment, "B", "other");
  environment_default(&environment, "HOME", "/root");
  check(strcmp(environment_get(&environment, "B"), "2") == 0 && strcmp(environment_get(&environment, "HOME"), "/root") == 0, "a default fills only what is absent");
  check(environment.items[environment.count] == NULL, "the list ends with NULL");
  free(environment.items[2]);
  environment_free(&environment);
}

static void paths(void) {
  const char *path = "/a::/b/";
  char candidate[16];
  check(path_next(&path, "x", candidate, sizeof candidate) && strcmp(candidate, "/a/x") == 0, "the first folder of PATH");
  check(path_next(&path, "x", candidate, sizeof candidate) && strcmp(candidate, "./x") == 0, "an empty one is the current folder");
  check(path_next(&path, "x", candidate, sizeof candidate) && strcmp(candidate, "/b//x") == 0 && !path_next(&path, "x", candidate, sizeof candidate), "the last one");
  path = "/far/too/long/for/this:/ok";
  check(path_next(&path, "x", candidate, sizeof candidate) && strcmp(candidate, "/ok/x") == 0, "a folder that does not fit is passed over");
}

static void queues(void) {
  struct queue queue;
  int ends[2];
  uint8_t bytes[10] = "012345678";
  queue_init(&queue, 8);
  check(pipe2(ends, O_NONBLOCK) == 0 && !queue_push(&queue, bytes, 9) && queue.used == 0, "what does not fit is not begun");
  bool held = true;
  for (int i = 0; i < 100; i++) {
    char got[8] = "";
    held = held && queue_push(&queue, bytes, 5) && queue_push(&queue, bytes, 3) && queue_room(&queue) == 0;
    held = held && queue_write(&queue, ends[1]) > 0 && queue_push(&queue, "ab", queue_room(&queue) < 2 ? 0 : 2);
    while (queue.used > 0) held = held && queue_write(&queue, ends[1]) > 0;
    held = held && read(ends[0], got, 5) == 5 && memcmp(got, "01234", 5) == 0;
    char rest[16];
    while (read(ends[0], rest, sizeof rest) > 0);
  }
  check(held, "bytes keep their order around the end of the ring");
  held = write(ends[1], "abcdef", 6) == 6 && queue_read(&queue, ends[0]) == 6 && queue.used == 6;
  check(held, "a read fills the free space");
  queue_free(&queue);
  close(ends[0]);
  close(ends[1]);
}

static void reports(void) {
  char text[REPORT_MAX];
  struct ending ending = { .exit_code = 137, .signal = 9, .oom = true };
  report_format(&ending, text);
  check(strcmp(text, "version=1\nexit_code=137\nsignal=9\noom=1\nend\n") == 0, "a report without an error");
  strcpy(ending.error, "two\nlines\tand \x7f\x01");
  report_format(&ending, text);
  check(strstr(text, "\nerror=two lines and   \nend\n") != NULL, "an error is one line of plain text");
  memset(ending.error, 'e', sizeof ending.error);
  check(report_format(&ending, text) < 1024 && strcmp(text + strlen(text) - 5, "\nend\n") == 0, "an endless error is cut, and the report is whole");
  int ends[2];
  char back[REPORT_MAX] = "";
  check(pipe(ends) == 0 && report_write(ends[1], &ending, 100) && read(ends[0], back, sizeof back) > 0 && strcmp(back, text) == 0, "it is written as it was made");
  close(ends[0]);
  close(ends[1]);
  check(!report_write(-1, &ending, 100), "without a port it is not written");
}

static void addresses(void) {
  uint32_t address, mask;
  uint8_t mac[6];
  check(network_parse_address("10.1.2.3/16", &address, &mask) && address == htonl(0x0A010203) && mask == htonl(0xFFFF0000), "an address with its length");
  check(network_parse_address("10.1.2.3", &address, &mask) && mask == 0xFFFFFFFF, "an address alone is a host");
  check(network_parse_address("0.0.0.0/0", &address, &mask) && mask == 0, "length 0");
  check(!network_parse_address("10.1.2/16", &address, &mask) && !network_parse_address("10.1.2.3/33", &address, &mask) &&
        !network_parse_address("10.1.2.3/", &address, &mask) && !network_parse_address("10.1.2.3/1x", &address, &mask) &&
        !network_parse_address("10.1.2.3/-1", &address, &mask) && !network_parse_address("1111111111111111111111/8", &address, &mask), "malformed addresses are refused");
  check(network_parse_mac("02:00:aB:00:00:ff", mac) && mac[2] == 0xAB && mac[5] == 0xFF, "a hardware address");
  check(!network_parse_mac("02:00:ab:00:00", mac) && !network_parse_mac("02:00:ab:00:00:ff:1", mac) && !network_parse_mac("", mac), "malformed hardware addresses are refused");
  check(counter_value("oom 1\noom_kill 12\n", "oom_kill") == 12 && counter_value("oom 1\n", "oom_kill") == 0 && counter_value(NULL, "x") == 0, "a counter of a control group");
  check(clock_first(3, 2) == 2 && clock_after(5, UINT64_MAX) == NEVER && clock_timeout(5, NEVER) == -1 && clock_timeout(5, 3) == 0 && clock_timeout(5, 8) == 3, "deadlines");
}

static void add_mount(struct writer *writer, const char *path, const char *device, const char *overlay) {
  uint8_t bytes[256];
  struct writer nested = { .bytes = bytes, .capacity = sizeof bytes };
  write_string(&nested, TAG_PATH, path);
  write_string(&nested, TAG_TYPE, "volume");
  write_string(&nested, TAG_DEVICE, device);
  if (overlay != NULL) write_string(&nested, TAG_OVERLAY_DEVICE, overlay);
  write_field(writer, TAG_MOUNT, nested.bytes, nested.length);
}

static bool identity_is_refused(uint8_t tag, const char *value) {
  uint8_t bytes[512], nested_bytes[256];
  struct writer writer = { .bytes = bytes, .capacity = sizeof bytes };
  struct writer nested = { .bytes = nested_bytes, .capacity = sizeof nested_bytes };
  struct fields fields;
  struct identity identity;
  struct failure failure = { 0 };
  if (tag == TAG_HOSTNAME) write_string(&writer, tag, value);
  else {
    write_string(&nested, tag, value);
    write_field(&writer, TAG_NETWORK, nested.bytes, nested.length);
  }
  if (fields_parse(bytes, writer.length, &fields) != 0) return false;
  bool refused = !identity_parse(&fields, &identity, &failure) && failure.error == EINVAL;
  fields_free(&fields);
  return refused;
}

static void identities(void) {
  check(identity_is_refused(TAG_MAC, "02:00:00:00:00") && identity_is_refused(TAG_MAC, "02:00:00:00:00:00:00:00"), "a malformed hardware address is refused");
  check(identity_is_refused(TAG_ADDRESS, "10.0.0.1/33") && identity_is_refused(TAG_GATEWAY, "10.0.0") && identity_is_refused(TAG_GATEWAY, "10.0.0.1/8"), "so are addresses");
  check(identity_is_refused(TAG_DNS, "8.8.8.8\nsearch evil") && !identity_is_refused(TAG_DNS, "2001:db8::1"), "so is a name server that is no address");
  check(identity_is_refused(TAG_HOSTNAME, "0123456789012345678901234567890123456789012345678901234567890123x") &&
        !identity_is_refused(TAG_HOSTNAME, "0123456789012345678901234567890123456789012345678901234567890123"), "so is a hostname that the kernel does not take");
}

static void workloads(void) {
  uint8_t bytes[2048], nested_bytes[256];
  struct writer writer = { .bytes = bytes, .capacity = sizeof bytes };
  struct writer nested = { .bytes = nested_bytes, .capacity = sizeof nested_bytes };
  struct workload workload;
  struct failure failure;
  write_string(&writer, TAG_KIND, "run");
  check(!workload_parse(&workload, bytes, writer.length, &failure) && failure.exit_code == 127, "a workload without argv is refused");
  write_string(&writer, TAG_ARGV, "prog");
  write_string(&writer, TAG_ENV, "A=1");
  write_string(&writer, TAG_HOSTNAME, "vm");
  write_field(&writer, TAG_ENTROPY, "0123", 4);
  add_mount(&writer, "/data/inner/deep", "/dev/vdc", NULL);
  add_mount(&writer, "/data", "/dev/vdd", "/dev/vde");
  write_string(&nested, TAG_ADDRESS, "10.0.0.2/24");
  write_string(&nested, TAG_DNS, "10.0.0.1");
  write_string(&nested, TAG_DNS, "10.0.0.9");
  write_field(&writer, TAG_NETWORK, nested.bytes, nested.length);
  write_field(&writer, TAG_NETWORK, nested.bytes, nested.length);
  check(workload_parse(&workload, bytes, writer.length, &failure) && strcmp(workload.argv[0], "prog") == 0 && workload.agent, "a workload is read");
  check(workload.volume_count == 2 && strcmp(workload.volumes[0].path, "/data") == 0 && strcmp(workload.volumes[0].overlay_device, "/dev/vde") == 0 &&
        strcmp(workload.volumes[1].device, "/dev/vdc") == 0, "outer mount points come first");
  char text[2048];
  check(hosts_format(&workload.identity, text, sizeof text) && strstr(text, "10.0.0.2\tvm\n") != NULL, "/etc/hosts names the machine");
  check(resolv_format(&workload.identity.network, text, sizeof text) && strstr(text, "nameserver 10.0.0.1\nnameserver 10.0.0.9\n") != NULL, "/etc/resolv.conf names the servers once");
  check(!hosts_format(&workload.identity, text, 20) && !resolv_format(&workload.identity.network, text, 20), "what does not fit is not half-written");
  struct identity later = { .hostname = "other", .network = { .given = true, .gateway = "10.0.0.254" } };
  identity_merge(&workload.identity, &later);
  check(strcmp(workload.identity.hostname, "other") == 0 && strcmp(workload.identity.network.address, "10.0.0.2/24") == 0 &&
        strcmp(workload.identity.network.gateway, "10.0.0.254") == 0 && workload.identity.network.dns_count == 2, "a wake changes what it names, and leaves the rest");
  workload_free(&workload);
  add_mount(&writer, "relative", "/dev/vdf", NULL);
  check(!workload_parse(&workload, bytes, writer.length, &failure) && failure.exit_code == 255, "a relative mount point is refused");
}

int main(void) {
  environments();
  paths();
  queues();
  reports();
  addresses();
  identities();
  workloads();
  return checks_end();
}
