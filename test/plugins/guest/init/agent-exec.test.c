// exec as a host sees it: streams, credit, exit codes, terminals, cancelling.
#include "check.h"
#include "client.h"
#include "clock.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct client client;
static struct answer answer;

static uint64_t code(void) {
  return answer.ended ? fields_number(&answer.fields, TAG_EXIT_CODE, 9999) : 9998;
}

static bool error_has(const char *part) {
  return strstr(fields_string(&answer.fields, TAG_ERROR, ""), part) != NULL;
}

static void before_run(void) {
  uint32_t channel = client_open(&client, "exec", TAG_ARGV, "true", 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(answer.ended && fields_number(&answer.fields, TAG_ERRNO, 0) == 11 && error_has("no workload"), "before the workload nothing can be executed");
  answer_free(&answer);
}

static void streams(void) {
  client_exec(&client, &answer, "", "echo out; echo err >&2; exit 3");
  check(code() == 3 && strcmp(answer.bytes[1], "out\n") == 0 && strcmp(answer.bytes[2], "err\n") == 0, "stdout and stderr are apart, and the exit code is right");
  check(answer.eof[1] && answer.eof[2], "both end before the result");
  answer_free(&answer);
  client_exec(&client, &answer, "b\na\n", "sort -r | tr a-z A-Z");
  check(code() == 0 && strcmp(answer.bytes[1], "B\nA\n") == 0, "standard input arrives, and its end too");
  answer_free(&answer);
  client_exec(&client, &answer, "", "echo again > /dev/stdout; echo $FROM $HOSTNAME; pwd");
  check(strcmp(answer.bytes[1], "again\nimage vm\n/\n") == 0, "/dev/stdout can be opened again; environment and folder are the workload's");
  answer_free(&answer);
  client_exec(&client, &answer, "", "kill -TERM $$");
  check(code() == 143 && fields_number(&answer.fields, TAG_SIGNAL, 0) == 15, "a signal gives 128 and its number");
  answer_free(&answer);
}

static void options(void) {
  uint32_t channel = client_open(&client, "exec", TAG_ARGV, "sh", TAG_ARGV, "-c", TAG_ARGV, "echo $FROM $NEW $HOME; pwd; id -u; id -G; cat /proc/self/oom_score_adj; ls /proc/self/fd | wc -l; umask",
                                 TAG_ENV, "FROM=exec", TAG_ENV, "NEW=1", TAG_CWD, "/usr", TAG_USER, "12345:23456", 0);
  client_send(&client, FRAME_EOF, channel, STREAM_IN, NULL, 0);
  client_answer(&client, channel, &answer, true, 5000);
  // `ls` itself has 0, 1, 2 and the folder.
  check(code() == 0 && strcmp(answer.bytes[1], "exec 1 /\n/usr\n12345\n23456\n0\n4\n0022\n") == 0, "env, cwd and user are honoured, and no descriptor leaks");
  answer_free(&answer);
}

static void start_failures(void) {
  static const struct {
    const char *argv, *user, *cwd;
    uint64_t code;
    const char *part;
  } cases[] = {
    { "no-such-command", "", "/", 127, "not found in PATH" },
    { "/no/such/command", "", "/", 127, "not found" },
    { "/etc/passwd", "", "/", 126, "cannot be executed" },
    { "/etc", "", "/", 126, "is a folder" },
    { "true", "no-such-user", "/", 126, "no user \"no-such-user\"" },
    { "true", "", "/no/such/folder", 126, "working directory" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t channel = client_open(&client, "exec", TAG_ARGV, cases[i].argv, TAG_USER, cases[i].user, TAG_CWD, cases[i].cwd, 0);
    client_answer(&client, channel, &answer, true, 5000);
    check(code() == cases[i].code && error_has(cases[i].part), cases[i].part);
    answer_free(&answer);
  }
  uint32_t channel = client_open(&client, "exec", 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(code() == 127, "no argv at all is refused");
  answer_free(&answer);
}

static void output_credit(void) {
  uint32_t channel = client_open(&client, "exec", TAG_ARGV, "head", TAG_ARGV, "-c", TAG_ARGV, "1000000", TAG_ARGV, "/dev/zero", 0);
  bool full = client_until(&client, channel, &answer, "", STREAM_CREDIT, false);
  size_t first = answer.length[1];
  answer_free(&answer);
  client_answer(&client, channel, &answer, false, 200);
  check(full && first == STREAM_CREDIT && answer.length[1] == 0 && !answer.ended, "without new credit the guest stops at 262,144 bytes");
  answer_free(&answer);
  client_credit(&client, channel, STREAM_OUT, 2000000);
  client_answer(&client, channel, &answer, false, 5000);
  check(code() == 0 && first + answer.length[1] == 1000000, "with credit it goes on and ends");
  answer_free(&answer);
}

static void input_credit(void) {
  static char block[FRAME_PAYLOAD_MAX];
  memset(block, 'x', sizeof block);
  uint32_t channel = client_open(&client, "exec", TAG_ARGV, "sh", TAG_ARGV, "-c", TAG_ARGV, "head -c 1 > /dev/null; exec <&-; sleep 0.5", 0);
  for (int i = 0; i < 4; i++) client_send(&client, FRAME_DATA, channel, STREAM_IN, block, sizeof block);
  client_answer(&client, channel, &answer, true, 5000);
  check(code() == 0 && answer.credited >= 3 * FRAME_PAYLOAD_MAX, "input that nobody reads is dropped and credited");
  answer_free(&answer);
  channel = client_open(&client, "exec", TAG_ARGV, "sleep", TAG_ARGV, "100", 0);
  // One block goes into the pipe and is credited again; the one after that is too many.
  for (int i = 0; i < 6; i++) client_send(&client, FRAME_DATA, channel, STREAM_IN, block, sizeof block);
  client_answer(&client, channel, &answer, true, 5000);
  check(code() == 137, "more input than the credit allows ends the channel");
  answer_free(&answer);
}

static void great_input(void) {
  enum { BLOCKS = 48 };
  static char block[FRAME_PAYLOAD_MAX];
  uint32_t channel = client_open(&client, "exec", TAG_ARGV, "cat", 0);
  size_t credit = STREAM_CREDIT, sent = 0, got = 0;
  bool same = true;
  uint64_t end = clock_ms() + 60000;
  while (got < (size_t)BLOCKS * sizeof block && clock_ms() < end) {
    while (sent < (size_t)BLOCKS * sizeof block && credit >= sizeof block) {
      for (size_t i = 0; i < sizeof block; i++) block[i] = (char)((sent + i) * 31 >> 3);
      client_send(&client, FRAME_DATA, channel, STREAM_IN, block, sizeof block);
      sent += sizeof block;
      credit -= sizeof block;
      if (sent == (size_t)BLOCKS * sizeof block) client_send(&client, FRAME_EOF, channel, STREAM_IN, NULL, 0);
    }
    client_answer(&client, channel, &answer, true, 50);
    credit += answer.credited;
    for (size_t i = 0; i < answer.length[1]; i++) same = same && answer.bytes[1][i] == (char)((got + i) * 31 >> 3);
    got += answer.length[1];
    bool over = answer.ended;
    answer_free(&answer);
    if (over) break;
  }
  check(same && got == (size_t)BLOCKS * sizeof block, "3 MiB through `cat` come back as they went");
}

static void background(void) {
  uint64_t begin = clock_ms();
  client_exec(&client, &answer, "", "sleep 1000 & echo $!");
  int child = atoi(answer.bytes[1]);
  check(code() == 0 && child > 0 && clock_ms() - begin < 9000, "a background child that holds the pipe does not hold the result");
  if (child > 0) kill(child, SIGKILL); // left alone by the agent, as docker does
  answer_free(&answer);
  begin = clock_ms();
  client_exec(&client, &answer, "", "(while :; do echo chatter; sleep 0.02; done) & exit 4");
  check(code() == 4 && clock_ms() - begin < 9000, "nor does one that never falls silent");
  answer_free(&answer);
  // It speaks at the moment at which the command has been reaped: a pause of fixed length could be longer on a busy machine.
  client_exec(&client, &answer, "", "(while kill -0 $$ 2> /dev/null; do :; done; echo late) & echo early");
  check(strcmp(answer.bytes[1], "early\nlate\n") == 0, "what comes shortly after the end is not lost");
  answer_free(&answer);
}

// By its state, since a process that was killed has its number until it is reaped.
static bool lives(int process) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  FILE *file = fopen(path, "r");
  if (file == NULL) return false;
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = 0;
  const char *state = strrchr(text, ')');
  return state != NULL && state[1] == ' ' && strchr("ZX", state[2]) == NULL;
}

// Its process group may be gone then, and its number that of another one.
static void cancelled_after_the_end(void) {
  // The rest of the output fits into the pipe, so the command ends, and its channel waits for credit.
  uint32_t channel = client_open(&client, "exec", TAG_ARGV, "sh", TAG_ARGV, "-c", TAG_ARGV, "sleep 1000 > /dev/null 2>&1 & echo $$ $!; head -c 300000 /dev/zero", 0);
  bool full = client_until(&client, channel, &answer, "", STREAM_CREDIT, false);
  int leader = 0, child = 0;
  bool told = full && sscanf(answer.bytes[1], "%d %d", &leader, &child) == 2 && leader > 0 && child > 0;
  answer_free(&answer);
  check(told, "a command that leaves a process behind, and output that nobody takes");
  if (!told) return;
  for (uint64_t end = clock_ms() + 10000; kill(leader, 0) == 0 && clock_ms() < end;) usleep(10000);
  client_control(&client, channel, "signal", TAG_SIGNAL, (long)SIGKILL, 0);
  client_control(&client, channel, "cancel", 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(code() == 0, "has ended by itself, whatever comes then");
  answer_free(&answer);
  client_exec(&client, &answer, "", "sleep 0.2");
  answer_free(&answer);
  check(lives(child), "and nothing is signalled by its number any more");
  kill(child, SIGKILL);
}

static void endings(void) {
  uint32_t channel = client_open(&client, "exec", TAG_ARGV, "sh", TAG_ARGV, "-c", TAG_ARGV, "echo on; sleep 1000", TAG_TIMEOUT_MS, 300L, 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(code() == 124 && fields_number(&answer.fields, TAG_SIGNAL, 0) == 9 && strcmp(answer.bytes[1], "on\n") == 0, "a timeout kills the group and gives 124");
  answer_free(&answer);
  channel = client_open(&client, "exec", TAG_ARGV, "sh", TAG_ARGV, "-c", TAG_ARGV, "sleep 1000; echo never", 0);
  client_control(&client, channel, "cancel", 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(code() == 137, "cancelling kills");
  answer_free(&answer);
  channel = client_open(&client, "exec", TAG_ARGV, "sh", TAG_ARGV, "-c", TAG_ARGV, "trap 'echo got; exit 5' USR1; echo ready; while :; do sleep 0.05; done", 0);
  check(client_until(&client, channel, &answer, "ready\n", 0, true), "a command that waits for a signal");
  answer_free(&answer);
  client_control(&client, channel, "signal", TAG_SIGNAL, 10L, 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(code() == 5 && strcmp(answer.bytes[1], "got\n") == 0, "gets it");
  answer_free(&answer);
}

static void terminals(void) {
  uint32_t channel = client_open(&client, "exec", TAG_ARGV, "sh", TAG_ARGV, "-c", TAG_ARGV, "stty size; echo $TERM; test -t 0 && test -t 2 && echo tty; cat; stty size", TAG_TTY, 1L,
                                 TAG_ROWS, 33L, TAG_COLS, 77L, 0);
  client_until(&client, channel, &answer, "\ntty\r\n", 0, true);
  check(strcmp(answer.bytes[1], "33 77\r\nxterm\r\ntty\r\n") == 0, "a terminal of the asked size");
  answer_free(&answer);
  client_control(&client, channel, "resize", TAG_ROWS, 44L, TAG_COLS, 88L, 0);
  client_send(&client, FRAME_DATA, channel, STREAM_IN, "line\npart", 9);
  client_send(&client, FRAME_EOF, channel, STREAM_IN, NULL, 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(code() == 0 && strcmp(answer.bytes[1], "line\r\npartline\r\npart44 88\r\n") == 0, "the end of input is typed, even behind a part of a line, and a resize counts");
  answer_free(&answer);
  channel = client_open(&client, "exec", TAG_ARGV, "sh", TAG_ARGV, "-c", TAG_ARGV, "echo up; exec sleep 100", TAG_TTY, 1L, 0);
  client_until(&client, channel, &answer, "up", 0, true);
  answer_free(&answer);
  client_send(&client, FRAME_DATA, channel, STREAM_IN, "\3", 1);
  client_answer(&client, channel, &answer, true, 5000);
  check(code() == 130, "control-C interrupts, since the terminal is the controlling one");
  answer_free(&answer);
}

static void limits(void) {
  uint32_t channels[64], last;
  for (int i = 0; i < 64; i++) channels[i] = client_open(&client, "exec", TAG_ARGV, "sleep", TAG_ARGV, "100", 0);
  last = client_open(&client, "exec", TAG_ARGV, "true", 0);
  client_answer(&client, last, &answer, true, 10000);
  check(fields_find(&answer.fields, TAG_EXIT_CODE) == NULL && error_has("too many"), "the 65th channel is refused, which is not a command's exit");
  answer_free(&answer);
  int ended = 0;
  for (int i = 0; i < 64; i++) {
    client_control(&client, channels[i], "cancel", 0);
    client_answer(&client, channels[i], &answer, true, 5000);
    ended += code() == 137;
    answer_free(&answer);
  }
  client_exec(&client, &answer, "", "true");
  check(ended == 64 && code() == 0, "and the places of ended ones are free again");
  answer_free(&answer);
  channels[0] = client_open(&client, "dance", 0);
  client_answer(&client, channels[0], &answer, true, 5000);
  check(error_has("does not know the kind \"dance\""), "an unknown kind is refused by name");
  answer_free(&answer);
  client_send(&client, FRAME_OPEN, 5000, 0, "\1\377\377\377\377", 5);
  client_answer(&client, 5000, &answer, true, 5000);
  check(error_has("malformed"), "malformed fields are refused");
  answer_free(&answer);
  client_send(&client, FRAME_DATA, 70000, STREAM_IN, "x", 1);
  client_control(&client, 70000, "cancel", 0);
  client_exec(&client, &answer, "", "true");
  check(code() == 0, "frames for unknown channels do no harm");
  answer_free(&answer);
}

int main(void) {
  client_start(&client);
  const char *phase = client_sync(&client);
  check(phase != NULL && strcmp(phase, "waiting") == 0, "the guest waits");
  before_run();
  check(client_run_sleeper(&client), "the program starts");
  streams();
  options();
  start_failures();
  output_credit();
  input_credit();
  great_input();
  background();
  cancelled_after_the_end();
  endings();
  terminals();
  limits();
  client_open(&client, "shutdown", TAG_GRACE_MS, 1000L, 0);
  check(client_join(&client, 10000), "the agent ends without a fault");
  client_end(&client);
  return checks_end();
}
