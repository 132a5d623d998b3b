// The kind rehearse on an ordinary machine: its forks, its answers, and what meets it; machine-rehearsal.long.test.ts has disks and mounts.
#include "check.h"
#include "client.h"
#include "clock.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct client client;
static struct answer answer;
static char trace[] = "/tmp/berth-rehearsal-XXXXXX";

static bool note(char what) {
  int fd = open(trace, O_WRONLY | O_APPEND | O_CLOEXEC);
  bool good = fd >= 0 && write(fd, &what, 1) == 1;
  if (fd >= 0) close(fd);
  return good;
}

// Whether it says what was done since it was asked last.
static bool noted(const char *expected) {
  char found[64] = "";
  int fd = open(trace, O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  client_read_all(fd, found, sizeof found);
  bool good = strcmp(found, expected) == 0 && ftruncate(fd, 0) == 0;
  close(fd);
  return good;
}

static bool prepare(const struct workload *workload, struct cgroups *cgroups, struct failure *failure) {
  (void)cgroups, (void)failure;
  const struct identity *identity = &workload->identity;
  return note('p') && strcmp(identity->hostname, "rehearsal") == 0 && identity->realtime_ns == 77 && identity->entropy_length == 4;
}

static bool cannot_prepare(const struct workload *workload, struct cgroups *cgroups, struct failure *failure) {
  (void)workload, (void)cgroups;
  return fail(failure, ENODEV, EXIT_BOOT_FAILED, "no stage");
}

static bool die(const struct workload *workload, struct cgroups *cgroups, struct failure *failure) {
  (void)workload, (void)cgroups, (void)failure;
  return raise(SIGKILL) != 0;
}

// The identity of a machine with a network, as `run` would bring it.
static bool prepare_connected(const struct workload *workload, struct cgroups *cgroups, struct failure *failure) {
  const struct network *network = &workload->identity.network;
  return prepare(workload, cgroups, failure) && network->given && strcmp(network->mac, "02:00:00:00:00:01") == 0 && strcmp(network->address, "10.1.0.5/24") == 0;
}

static bool dawdle(const struct workload *workload, struct cgroups *cgroups, struct failure *failure) {
  usleep(300000); // the time in which something else is to be asked
  return prepare(workload, cgroups, failure);
}

static bool clear(struct failure *failure) {
  (void)failure;
  return note('c');
}

static bool cannot_clear(struct failure *failure) {
  return fail(failure, EBUSY, NO_EXIT, "it does not go");
}

static void begin(const struct rehearsal_place *place) {
  client_place = place;
  client_start(&client);
  client_sync(&client);
}

static void end(void) {
  client_open(&client, "shutdown", 0);
  check(client_join(&client, 10000), "the agent ends without a fault");
  client_end(&client);
}

static uint32_t rehearse(void) {
  return client_open(&client, "rehearse", TAG_REALTIME_NS, 77L, TAG_ENTROPY, "seed", 0);
}

static uint32_t rehearse_connected(const char *mac) {
  uint8_t bytes[128];
  struct writer network = { .bytes = bytes, .capacity = sizeof bytes };
  write_string(&network, TAG_MAC, mac);
  write_string(&network, TAG_ADDRESS, "10.1.0.5/24");
  uint8_t payload[256];
  struct writer asked = { .bytes = payload, .capacity = sizeof payload };
  write_string(&asked, TAG_KIND, "rehearse");
  write_number(&asked, TAG_REALTIME_NS, 77);
  write_string(&asked, TAG_ENTROPY, "seed");
  write_field(&asked, TAG_NETWORK, network.bytes, network.length);
  uint32_t channel = client.next_channel++;
  client_send(&client, FRAME_OPEN, channel, 0, asked.bytes, asked.length);
  return channel;
}

static bool answered(uint32_t channel, uint64_t error, const char *text) {
  client_answer(&client, channel, &answer, true, 5000);
  bool good = answer.ended && fields_number(&answer.fields, TAG_ERRNO, 0) == error &&
              (error == 0 ? answer.fields.count == 0 : strcmp(fields_string(&answer.fields, TAG_ERROR, ""), text) == 0);
  if (!good) printf("# %llu %s\n", (unsigned long long)fields_number(&answer.fields, TAG_ERRNO, 0), fields_string(&answer.fields, TAG_ERROR, ""));
  answer_free(&answer);
  return good;
}

static bool phase_is(const char *phase) {
  const char *found = client_sync(&client);
  return found != NULL && strcmp(found, phase) == 0;
}

static void usual(void) {
  static const struct rehearsal_place place = { .program = "/bin/echo", .prepare = prepare, .clear = clear };
  char byte;
  begin(&place);
  check(answered(rehearse(), 0, ""), "a rehearsal is answered");
  check(noted("pc"), "after it was prepared and cleared away, with the host's time and randomness");
  check(answered(rehearse(), 0, "") && noted("pc"), "another one too");
  check(phase_is("waiting"), "and the guest waits as before");
  fcntl(client.output, F_SETFL, O_NONBLOCK);
  check(read(client.output, &byte, 1) < 0 && errno == EAGAIN, "what the program of a rehearsal says is not heard");
  check(client_run_sleeper(&client), "a workload starts after it");
  check(answered(rehearse(), EALREADY, "this guest has its workload already"), "and there is no rehearsal after that");
  end();
  check(noted(""), "nothing more was done");
}

// What a real guest does with it is the machine's; here it only reaches the start.
static void network(void) {
  static const struct rehearsal_place place = { .program = "/bin/echo", .prepare = prepare_connected, .clear = clear };
  begin(&place);
  check(answered(rehearse_connected("02:00:00:00:00:01"), 0, "") && noted("pc"), "a rehearsed start has the network that the real one will have");
  check(answered(rehearse_connected("none"), EINVAL, "the machine's identity is malformed: mac") && noted(""), "one that is malformed is refused");
  check(phase_is("waiting"), "and the guest waits");
  end();
}

static void failures(void) {
  static const struct {
    struct rehearsal_place place;
    uint64_t error;
    const char *text, *trace;
  } cases[] = {
    { { .program = "/bin/false", .prepare = prepare, .clear = clear }, EIO, "the rehearsal failed: its program failed", "pc" },
    { { .program = "/nowhere", .prepare = prepare, .clear = clear }, EIO, "the rehearsal failed: \"/nowhere\" was not found", "pc" },
    { { .program = "/bin/true", .prepare = cannot_prepare, .clear = clear }, EIO, "the rehearsal failed: no stage", "c" },
    { { .program = "/bin/true", .prepare = die, .clear = clear }, EIO, "the rehearsal was ended by signal 9", "c" },
    { { .program = "/bin/true", .prepare = prepare, .clear = cannot_clear }, EBUSY, "it does not go", "p" },
    { { .program = "/bin/false", .prepare = prepare, .clear = cannot_clear }, EIO, "the rehearsal failed: its program failed", "p" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    begin(&cases[i].place);
    check(answered(rehearse(), cases[i].error, cases[i].text), cases[i].text);
    check(noted(cases[i].trace), "and it was cleared away");
    check(phase_is("waiting") && client_run_sleeper(&client), "the guest is as good as before");
    end();
  }
  begin(NULL);
  check(answered(rehearse(), EOPNOTSUPP, "this guest cannot rehearse"), "a guest without a place for it says so");
  check(answered(client_open(&client, "bind", 0), EOPNOTSUPP, "this guest has no disks"), "and one without disks has none to give a driver");
  end();
}

static void meanwhile(void) {
  static const struct rehearsal_place place = { .program = "/bin/true", .prepare = dawdle, .clear = clear };
  begin(&place);
  uint32_t first = rehearse();
  check(answered(rehearse(), EAGAIN, "the guest is rehearsing"), "two rehearsals at a time are refused");
  check(answered(client_open(&client, "run", TAG_ARGV, "true", 0), EAGAIN, "the guest is rehearsing"), "and so is a workload");
  check(answered(first, 0, ""), "the first goes on");
  rehearse();
  check(phase_is("waiting"), "a new host is served at once");
  check(answered(rehearse(), EAGAIN, "the guest is rehearsing"), "and told of what is under way");
  usleep(800000); // nobody is told of its end
  check(client_run_sleeper(&client), "which ends by itself");
  end();
  begin(&place);
  rehearse();
  end();
}

int main(void) {
  int fd = mkstemp(trace);
  if (fd < 0) abort();
  close(fd);
  usual();
  network();
  failures();
  meanwhile();
  unlink(trace);
  return checks_end();
}
