// The kinds sleep and wake, with a folder of plain files in the place of the kernel's control groups; machine.long.test.ts has real ones.
#include "check.h"
#include "client.h"
#include "clock.h"
#include "rehearsal-program.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct client client;
static struct answer answer;
static char folder[] = "/tmp/berth-groups-XXXXXX";

static void put(const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) abort();
  close(fd);
}

static bool holds(const char *name, const char *text) {
  char path[256], found[256] = "";
  snprintf(path, sizeof path, "%s/%s", folder, name);
  int fd = open(path, O_RDONLY);
  if (fd < 0) return false;
  client_read_all(fd, found, sizeof found);
  close(fd);
  return strncmp(found, text, strlen(text)) == 0;
}

static void make_group(const char *name, const char *freeze, const char *events) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (mkdir(path, 0700) < 0 && access(path, F_OK) < 0) abort();
  snprintf(path, sizeof path, "%s/cgroup.freeze", name);
  put(path, freeze);
  snprintf(path, sizeof path, "%s/cgroup.events", name);
  put(path, events);
}

static void begin(void) {
  client_start(&client);
  client_sync(&client);
}

static void end(void) {
  client_open(&client, "shutdown", 0);
  check(client_join(&client, 10000), "the agent ends without a fault");
  client_end(&client);
}

// Whether the channel is answered with this errno; 0 for success.
static bool answered(uint32_t channel, uint64_t error) {
  client_answer(&client, channel, &answer, true, 5000);
  bool good = answer.ended && fields_number(&answer.fields, TAG_ERRNO, 0) == error && (error != 0 || answer.fields.count == 0);
  answer_free(&answer);
  return good;
}

static bool phase_is(const char *phase) {
  const char *found = client_sync(&client);
  return found != NULL && strcmp(found, phase) == 0;
}

static void refusals(void) {
  client_groups = NULL;
  begin();
  check(answered(client_open(&client, "sleep", 0), 11) && answered(client_open(&client, "wake", 0), 11), "a guest without a workload has nothing to freeze");
  client_run_sleeper(&client);
  check(answered(client_open(&client, "sleep", 0), 95) && phase_is("running"), "nor can one without control groups");
  check(answered(client_open(&client, "wake", TAG_HOSTNAME, "h", 0), 0), "but it can be given an identity");
  end();
}

static void nights(void) {
  client_groups = folder;
  make_group("berth", "0\n", "populated 1\nfrozen 1\n");
  make_group("docker", "0\n", "populated 0\nfrozen 1\n");
  make_group("theirs", "1\n", "populated 1\nfrozen 1\n");
  begin();
  client_run_sleeper(&client);
  check(answered(client_open(&client, "sleep", TAG_SYNC, 1L, 0), 0) && holds("berth/cgroup.freeze", "1") && holds("docker/cgroup.freeze", "1"), "sleep freezes every group");
  check(answered(client_open(&client, "sleep", 0), 0), "once more changes nothing");
  check(answered(client_open(&client, "exec", TAG_ARGV, "true", 0), 11), "an instance that is asleep takes no commands");
  check(phase_is("asleep") && holds("berth/cgroup.freeze", "1"), "a new host finds it asleep and does not wake it");
  check(answered(client_open(&client, "wake", TAG_HOSTNAME, "refused", 0), 5) && phase_is("asleep"), "an identity that cannot be applied does not wake it");
  check(answered(client_open(&client, "wake", TAG_HOSTNAME, "h", TAG_REALTIME_NS, 5L, TAG_ENTROPY, "0123456789", TAG_NEW_MACHINE, 1L, 0), 0) &&
        holds("woken", "h   5 10 1") && holds("berth/cgroup.freeze", "0") && holds("docker/cgroup.freeze", "0"), "wake applies the identity and thaws");
  check(holds("theirs/cgroup.freeze", "1"), "what the guest has frozen itself stays so");
  check(answered(client_open(&client, "wake", 0), 0) && holds("woken", "h   0 0 0") && phase_is("running"), "a wake that names nothing keeps the identity");
  client_exec(&client, &answer, "", "echo $HOSTNAME");
  check(strcmp(answer.bytes[1], "h\n") == 0, "commands see the new name");
  answer_free(&answer);
  check(answered(client_open(&client, "sleep", TAG_SYNC, 0L, 0), 0) && holds("berth/cgroup.freeze", "1"), "and it can fall asleep again");
  end();
  check(holds("berth/cgroup.freeze", "0"), "a shutdown thaws, or its signal would not be heard");
}

static void rehearsals(void) {
  client_groups = folder;
  make_group("berth", "0\n", "populated 1\nfrozen 1\n");
  begin();
  client_run_sleeper(&client);
  check(answered(client_open(&client, "rehearse", 0), 95), "an instance that is awake rehearses nothing");
  check(answered(client_open(&client, "sleep", 0), 0) && answered(client_open(&client, "rehearse", TAG_HOSTNAME, "refused", 0), 5), "a rehearsal of a wake says what cannot be applied");
  uint32_t channel = client_open(&client, "rehearse", TAG_HOSTNAME, "h", TAG_REALTIME_NS, 5L, TAG_ENTROPY, "0123456789", TAG_NEW_MACHINE, 1L, 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(answer.ended && fields_number(&answer.fields, TAG_EXIT_CODE, 1) == 0 && strcmp(answer.bytes[1], "scene\n") == 0, "one that can be applied is followed by a command");
  answer_free(&answer);
  check(holds("woken", "h   5 10 1") && holds("berth/cgroup.freeze", "1") && phase_is("asleep"), "and the program stays frozen");
  check(answered(client_open(&client, "exec", TAG_ARGV, "true", 0), 11), "nor is any other command taken");
  check(answered(client_open(&client, "wake", TAG_HOSTNAME, "other", 0), 0) && holds("woken", "other   0 0 0") && holds("berth/cgroup.freeze", "0"), "a wake gives it another identity, and thaws");
  end();
}

static void failures(void) {
  make_group("berth", "0\n", "populated 1\nfrozen 0\n");
  begin();
  client_run_sleeper(&client);
  uint64_t now = clock_ms();
  check(answered(client_open(&client, "sleep", TAG_TIMEOUT_MS, 200L, 0), 110) && clock_ms() - now >= 200 && holds("berth/cgroup.freeze", "0"), "what does not freeze in time runs on");
  uint32_t first = client_open(&client, "sleep", TAG_TIMEOUT_MS, 60000L, 0);
  check(answered(client_open(&client, "sleep", 0), 114), "a second sleep meanwhile is refused");
  check(answered(client_open(&client, "exec", TAG_ARGV, "true", 0), 11) && holds("berth/cgroup.freeze", "1"), "so are commands");
  client_open(&client, "wake", 0);
  check(answered(first, 125) && holds("berth/cgroup.freeze", "0"), "a wake ends it");
  client_open(&client, "sleep", TAG_TIMEOUT_MS, 60000L, 0);
  check(phase_is("running") && holds("berth/cgroup.freeze", "0"), "so does a new host, which cannot have taken an image");
  first = client_open(&client, "sleep", TAG_TIMEOUT_MS, 60000L, 0);
  client_open(&client, "shutdown", 0);
  check(answered(first, 108), "and so does a shutdown");
  check(client_join(&client, 10000) && holds("berth/cgroup.freeze", "0"), "which ends the guest as ever");
  client_end(&client);
}

static void agent_off(void) {
  make_group("berth", "0\n", "populated 1\nfrozen 1\n");
  begin();
  check(answered(client_open(&client, "run", TAG_ARGV, "sleep", TAG_ARGV, "1000", TAG_AGENT, 0L, 0), 0), "a guest without the agent");
  check(answered(client_open(&client, "sleep", 0), 0) && phase_is("asleep") && answered(client_open(&client, "wake", 0), 0), "sleeps and wakes all the same");
  end();
}

int main(int argc, char **argv) {
  char command[64];
  // The command of a rehearsal is the agent's own program.
  if (argc > 1) return rehearsal_program_run(argv[1]);
  if (mkdtemp(folder) == NULL) abort();
  refusals();
  nights();
  rehearsals();
  failures();
  agent_off();
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command) != 0) return 1;
  return checks_end();
}
