// The program's life as a host sees it: run, events, report, stop, a host that comes and goes.
#include "check.h"
#include "client.h"
#include "clock.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct client client;
static struct answer answer;
static char report[8192], output[CLIENT_OUTPUT_MAX];

static void begin(void) {
  client_start(&client);
  client_sync(&client);
}

static uint32_t run(const char *script) {
  return client_open(&client, "run", TAG_ARGV, "sh", TAG_ARGV, "-c", TAG_ARGV, script, TAG_HOSTNAME, "vm", 0);
}

// The agent ends by itself; then both pipes are read to their end.
static bool ended(void) {
  size_t length = client_read_all(client.output, output, sizeof output);
  client_read_all(client.report, report, sizeof report);
  bool good = client_join(&client, 10000);
  client_end(&client);
  return good && length < sizeof output;
}

static bool reported(const char *text) {
  return strcmp(report, text) == 0;
}

static void usual(void) {
  struct fields event;
  begin();
  uint32_t channel = run("echo out; echo err >&2; echo again > /dev/stderr; exit 7");
  client_answer(&client, channel, &answer, true, 5000);
  check(answer.ended && answer.fields.count == 0, "run answers when the program has been started");
  answer_free(&answer);
  check(client_event(&client, "exited", &event, 5000) && client.started && fields_number(&event, TAG_EXIT_CODE, 0) == 7 && fields_number(&event, TAG_OOM, 9) == 0, "started and exited are told");
  fields_free(&event);
  check(ended() && strcmp(output, "out\nerr\nagain\n") == 0, "its output is relayed in order");
  check(reported("version=1\nexit_code=7\nsignal=0\noom=0\nend\n"), "and its end is reported");
}

static void great_output(void) {
  begin();
  run("head -c 3000000 /dev/zero; kill -9 $$");
  check(ended() && strlen(report) > 0, "a program that writes much and dies");
  check(reported("version=1\nexit_code=137\nsignal=9\noom=0\nend\n"), "is reported as killed, not as out of memory");
  begin();
  run("i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done; head -c 2000000 /dev/zero | tr '\\0' x");
  bool good = ended();
  check(good && strncmp(output, "0\n1\n2\n", 6) == 0 && strlen(output) > 2000000 && strstr(output, "\n2999\nxxxx") != NULL, "every byte is there before the report");
}

static void start_failures(void) {
  begin();
  uint32_t channel = client_open(&client, "run", TAG_ARGV, "/no/such/thing", 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(answer.ended && fields_number(&answer.fields, TAG_EXIT_CODE, 0) == 127 && fields_number(&answer.fields, TAG_ERRNO, 0) == 2, "a program that is not there");
  answer_free(&answer);
  check(ended() && reported("version=1\nexit_code=127\nsignal=0\noom=0\nerror=\"/no/such/thing\" was not found\nend\n"), "is reported as 127");
  begin();
  client_open(&client, "run", TAG_ARGV, "true", TAG_USER, "no-such-user", 0);
  check(ended() && strstr(report, "exit_code=126\n") != NULL && strstr(report, "error=there is no user \"no-such-user\"") != NULL, "an unknown user is reported as 126");
  begin();
  channel = client_open(&client, "run", 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(answer.ended && fields_number(&answer.fields, TAG_EXIT_CODE, 0) == 127, "a workload without argv is refused");
  answer_free(&answer);
  check(ended() && reported("version=1\nexit_code=127\nsignal=0\noom=0\nerror=argv names no command\nend\n"), "and the guest ends with the reason");
  begin();
  struct fields event;
  uint8_t bad[] = { TAG_KIND, 3, 0, 0, 0, 'r', 'u', 'n', TAG_ARGV, 3, 0, 0, 0, 'a', 0, 'b' };
  channel = client.next_channel++;
  client_send(&client, FRAME_OPEN, channel, 0, bad, sizeof bad);
  client_answer(&client, channel, &answer, true, 5000);
  check(answer.ended && fields_number(&answer.fields, TAG_EXIT_CODE, 0) == 255 && fields_number(&answer.fields, TAG_ERRNO, 0) == 22, "one with a NUL in an argument is refused");
  answer_free(&answer);
  check(client_event(&client, "exited", &event, 5000) && fields_number(&event, TAG_EXIT_CODE, 0) == 255, "the guest ends, and says so");
  fields_free(&event);
  check(ended() && reported("version=1\nexit_code=255\nsignal=0\noom=0\nerror=the workload is malformed: fields\nend\n"), "and reports that its program never ran");
  begin();
  check(client_run_sleeper(&client), "a guest that runs");
  channel = run("true");
  client_answer(&client, channel, &answer, true, 5000);
  check(strstr(fields_string(&answer.fields, TAG_ERROR, ""), "already") != NULL, "a second one is refused");
  answer_free(&answer);
  client_open(&client, "shutdown", 0);
  check(ended() && strstr(report, "exit_code=137\nsignal=9\n") != NULL, "a stop without grace kills at once");
}

static void stops(void) {
  begin();
  client_open(&client, "shutdown", TAG_GRACE_MS, 1000L, 0);
  check(ended() && reported("version=1\nexit_code=0\nsignal=0\noom=0\nend\n"), "a guest that waits ends at once");
  begin();
  uint32_t channel = run("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.02; done");
  client_answer(&client, channel, &answer, true, 5000);
  answer_free(&answer);
  check(read(client.output, output, 3) == 3, "a program that ends well");
  channel = client_open(&client, "shutdown", TAG_GRACE_MS, 8000L, 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(answer.ended && answer.fields.count == 0, "the stop is answered at once");
  answer_free(&answer);
  check(ended() && strcmp(output, "bye\n") == 0 && strstr(report, "exit_code=3\nsignal=0\n") != NULL, "and the program ends in its own way");
  begin();
  run("trap '' TERM; echo up; while :; do sleep 0.02; done");
  check(read(client.output, output, 3) == 3, "a program that does not listen");
  uint64_t now = clock_ms();
  client_open(&client, "shutdown", TAG_GRACE_MS, 300L, 0);
  check(ended() && clock_ms() - now >= 300 && clock_ms() - now < 9000 && strstr(report, "signal=9\n") != NULL, "is killed after the grace");
  begin();
  run("trap 'exit 9' QUIT; echo up; while :; do sleep 0.02; done");
  check(read(client.output, output, 3) == 3, "a program with a stop signal of its own");
  client_open(&client, "shutdown", TAG_GRACE_MS, 8000L, TAG_SIGNAL, 3L, 0);
  check(ended() && strstr(report, "exit_code=9\n") != NULL, "gets that one");
}

static void agent_off(void) {
  static const char *const kinds[] = { "exec", "put", "get", "stat" };
  begin();
  uint32_t channel = client_open(&client, "run", TAG_ARGV, "sleep", TAG_ARGV, "1000", TAG_AGENT, 0L, 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(answer.ended && answer.fields.count == 0, "a workload without the agent runs");
  answer_free(&answer);
  for (int i = 0; i < 4; i++) {
    channel = client_open(&client, kinds[i], TAG_ARGV, "true", TAG_PATH, "/", 0);
    client_answer(&client, channel, &answer, true, 5000);
    check(fields_number(&answer.fields, TAG_ERRNO, 0) == 95 && fields_find(&answer.fields, TAG_EXIT_CODE) == NULL && strcmp(fields_string(&answer.fields, TAG_ERROR, ""), "the guest agent is disabled for this instance") == 0, kinds[i]);
    answer_free(&answer);
  }
  client_open(&client, "shutdown", TAG_GRACE_MS, 2000L, 0);
  check(ended() && strstr(report, "exit_code=143\n") != NULL, "but it can be stopped");
}

static pid_t command;

static bool command_is_gone(void) {
  return kill(command, 0) < 0;
}

static void resyncs(void) {
  static uint8_t zeros[66000];
  begin();
  check(client_run_sleeper(&client), "a running guest");
  bool held = true;
  for (size_t cut = 1; cut < 40; cut += 3) {
    struct frame frame = { .type = FRAME_OPEN, .channel = client.next_channel++, .length = 60000 };
    uint8_t begun[64] = { 0 };
    frame_write_header(begun, &frame);
    if (send(client.fd, begun, cut, 0) != (ssize_t)cut) held = false;
    if (send(client.fd, zeros, sizeof zeros, 0) != (ssize_t)sizeof zeros) held = false;
    const char *phase = client_sync(&client);
    held = held && phase != NULL && strcmp(phase, "running") == 0;
  }
  check(held, "66,000 zero bytes and a sync get through in the middle of any frame");
  uint32_t channel = client_open(&client, "exec", TAG_ARGV, "sh", TAG_ARGV, "-c", TAG_ARGV, "echo $$; exec sleep 1000", 0);
  client_until(&client, channel, &answer, "\n", 2, true);
  command = (pid_t)atoi(answer.bytes[1]);
  answer_free(&answer);
  check(command > 1 && !command_is_gone() && client_sync(&client) != NULL, "a sync while a command runs");
  client_exec(&client, &answer, "", "echo $$");
  check(client_wait_for(command_is_gone) && answer.length[1] > 0, "ends that command, and new ones work");
  answer_free(&answer);
  client_open(&client, "shutdown", 0);
  check(ended(), "the agent ends without a fault");
}

static unsigned long ticks_of(pid_t pid) {
  char name[64], text[1024];
  unsigned long user = 0, system = 0;
  snprintf(name, sizeof name, "/proc/%d/stat", pid);
  int fd = open(name, O_RDONLY);
  client_read_all(fd, text, sizeof text);
  close(fd);
  const char *rest = strrchr(text, ')');
  if (rest != NULL && sscanf(rest + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2) return 0;
  return user + system;
}

static void host_gone(void) {
  begin();
  uint32_t channel = run("echo one; sleep 1; echo two; exit 6");
  client_answer(&client, channel, &answer, true, 5000);
  answer_free(&answer);
  client_hang_up(&client);
  usleep(100000); // what the agent does at the hang-up itself is not what is measured
  unsigned long before = ticks_of(client.agent);
  usleep(500000);
  unsigned long used = ticks_of(client.agent) - before;
  check(used <= 2, "without a host the agent sleeps");
  check(ended() && strcmp(output, "one\ntwo\n") == 0 && strstr(report, "exit_code=6\n") != NULL, "the program goes on, and its end is reported all the same");
}

static void leftovers(void) {
  begin();
  run("trap '' TERM; (trap '' TERM; exec sleep 1000) & echo $!; exit 2");
  uint64_t now = clock_ms();
  check(ended() && clock_ms() - now < 9000 && strstr(report, "exit_code=2\n") != NULL, "a background process that does not end does not hold the end");
  // Only a first process can end what has left its hands.
  int child = atoi(output);
  if (child > 0) kill(child, SIGKILL);
}

int main(void) {
  usual();
  great_output();
  start_failures();
  stops();
  agent_off();
  resyncs();
  host_gone();
  leftovers();
  return checks_end();
}
