// Images whose program is an init: which they are, process 1 of a namespace, what is started beside it, and every way in which it ends.
#include "check.h"
#include "client.h"
#include "init-root.h"
#include "init-system.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct client client;
static struct answer answer;
static char folder[] = "/tmp/berth-init-XXXXXX", self[4096];
static char report[8192], output[CLIENT_OUTPUT_MAX];

static void started(void) {
}

static const struct init_place place = { .make_root = init_root_make, .started = started };

static char *in_folder(const char *name) {
  static char path[8][128];
  static int next;
  char *one = path[next++ % 8];
  snprintf(one, sizeof path[0], "%s/%s", folder, name);
  return one;
}

// What the host of a process namespace would have to fear: only ever as process 1 of one.
static int act(const char *what) {
  if (getpid() != 1) return 99;
  if (strcmp(what, "power-off") == 0) reboot(RB_POWER_OFF);
  if (strcmp(what, "reboot") == 0) reboot(RB_AUTOBOOT);
  for (int number = 1; number < 32; number++) signal(number, SIG_DFL);
  __builtin_trap();
}

static void is_recognised(void) {
  char *path = malloc(256);
  snprintf(path, 256, "PATH=/nowhere:%s", folder);
  struct {
    const char *command;
    enum init_system init;
  } cases[] = {
    { "sh", INIT_NONE }, { "/bin/tini", INIT_NONE }, { "/app/init", INIT_NONE }, { "./init", INIT_NONE }, { "initd", INIT_NONE }, { "", INIT_NONE },
    { in_folder("init"), INIT_NONE }, { "init", INIT_BUSYBOX }, { "systemd", INIT_SYSTEMD }, { in_folder("systemd"), INIT_SYSTEMD },
    { in_folder("other/systemd"), INIT_OTHER }, { "/nowhere/systemd", INIT_OTHER }, { "/bin/systemd-cat", INIT_NONE },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *argv[] = { (char *)cases[i].command, NULL }, *env[] = { "A=b", path, NULL };
    struct workload workload = { .argv = argv, .env = env };
    check(init_system_of(&workload) == cases[i].init, cases[i].command);
  }
  free(path);
  check(init_system_stop_signal(INIT_SYSTEMD, SIGTERM) == SIGRTMIN + 3 && init_system_stop_signal(INIT_BUSYBOX, SIGTERM) == SIGUSR2 &&
        init_system_stop_signal(INIT_SYSV, SIGTERM) == SIGINT && init_system_stop_signal(INIT_OTHER, SIGTERM) == SIGTERM &&
        init_system_stop_signal(INIT_NONE, SIGTERM) == SIGTERM, "each is asked to end in its own way");
  check(init_system_stop_signal(INIT_SYSTEMD, SIGQUIT) == SIGQUIT, "and in the image's, when that has one");
}

// An init that does what the script says.
static void begin(const char *script) {
  char variable[4096];
  client_start(&client);
  client_sync(&client);
  snprintf(variable, sizeof variable, "SCRIPT=%s", script);
  uint32_t channel = client_open(&client, "run", TAG_ARGV, in_folder("systemd"), TAG_ENV, variable, 0);
  client_answer(&client, channel, &answer, true, 10000);
  check(answer.ended && answer.fields.count == 0, script);
  answer_free(&answer);
}

static bool ended(void) {
  client_read_all(client.output, output, sizeof output);
  client_read_all(client.report, report, sizeof report);
  bool good = client_join(&client, 10000);
  client_end(&client);
  return good;
}

static bool reported(const char *text) {
  return strncmp(report, text, strlen(text)) == 0;
}

static bool up(void) {
  char word[3] = "";
  return read(client.output, word, 3) == 3 && memcmp(word, "up\n", 3) == 0;
}

#define WAIT "echo up; while :; do sleep 0.02; done"

static void is_process_1(void) {
  begin("trap 'echo halting; exit 5' 37; trap 'echo wrong; exit 6' TERM; test -t 0 && test -t 1 && test -t 2 && echo terminal; echo $$ $container $TERM; "
        "echo to the console > /dev/console; echo up; while :; do sleep 0.02; done");
  char text[256] = "";
  for (size_t have = 0; strstr(text, "up\n") == NULL && have < sizeof text - 1;) {
    ssize_t got = read(client.output, text + have, sizeof text - 1 - have);
    if (got <= 0) break;
    have += (size_t)got;
  }
  check(strcmp(text, "terminal\n1 berth dumb\nto the console\nup\n") == 0, "it is process 1, has a terminal, and both it and /dev/console are the output");
  client_exec(&client, &answer, "", "cat /proc/1/comm; echo $PPID; test $$ -lt 50 && echo few; ls -d /proc/[0-9]* | wc -l | grep -qx '[0-9]' && echo alone; cut -d: -f3 /proc/1/cgroup | sort -u");
  check(strcmp(answer.bytes[1], "systemd\n0\nfew\nalone\n/\n") == 0, "a command sees it, and nothing outside, and the init's group is the root of all");
  answer_free(&answer);
  client_exec(&client, &answer, "in\n", "cat; exit 4");
  check(strcmp(answer.bytes[1], "in\n") == 0 && fields_number(&answer.fields, TAG_EXIT_CODE, 0) == 4, "its streams and exit code are its own");
  answer_free(&answer);
  uint32_t channel = client_open(&client, "exec", TAG_ARGV, "tty", TAG_TTY, 1L, 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(strncmp(answer.bytes[1], "/dev/pts/", 9) == 0, "and so is its terminal");
  answer_free(&answer);
  channel = client_open(&client, "exec", TAG_ARGV, "sleep", TAG_ARGV, "1000", 0);
  client_control(&client, channel, "signal", TAG_SIGNAL, (long)SIGINT, 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(fields_number(&answer.fields, TAG_SIGNAL, 0) == SIGINT, "a signal of the host reaches a command");
  answer_free(&answer);
  channel = client_open(&client, "exec", TAG_ARGV, "no-such-command", 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(fields_number(&answer.fields, TAG_EXIT_CODE, 0) == 127, "a command that is not there");
  answer_free(&answer);
  client_open(&client, "shutdown", TAG_GRACE_MS, 8000L, TAG_SIGNAL, (long)SIGTERM, 0);
  check(ended() && strcmp(output, "halting\n") == 0 && reported("version=1\nexit_code=5\nsignal=0\noom=0\nend\n"), "a stop is the signal that systemd takes for one");
}

static void cannot_be_killed_from_inside(void) {
  begin("trap : INT; " WAIT);
  check(up(), "an init that does not care");
  client_exec(&client, &answer, "", "kill -9 1; kill -TERM 1; kill -INT 1; kill -HUP 1; kill -SEGV 1; (sleep 1000 &) ; kill -9 -1; exit 8");
  check(fields_number(&answer.fields, TAG_EXIT_CODE, 0) == 8, "a command that kills whatever it can");
  answer_free(&answer);
  client_exec(&client, &answer, "", "cat /proc/1/comm");
  check(strcmp(answer.bytes[1], "systemd\n") == 0, "has ended neither the init nor the agent");
  answer_free(&answer);
  uint32_t channel = client_open(&client, "stat", TAG_PATH, folder, 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(fields_number(&answer.fields, TAG_EXISTS, 0) == 1, "and files are copied as before");
  answer_free(&answer);
  client_exec(&client, &answer, "", "(sleep 1000 > /dev/null 2>&1 &); (setsid sleep 1000 > /dev/null 2>&1 &)");
  answer_free(&answer);
  client_open(&client, "exec", TAG_ARGV, "sleep", TAG_ARGV, "1000", 0);
  client_open(&client, "shutdown", TAG_GRACE_MS, 100L, 0);
  check(ended() && reported("version=1\nexit_code=137\nsignal=9\n"), "after the grace it is killed, with all that runs beside it");
}

static void ends(const char *script, const char *how) {
  begin(script);
  client_open(&client, "exec", TAG_ARGV, "sleep", TAG_ARGV, "1000", 0);
  check(ended(), "it ends");
  check(reported(how), "and is reported so");
}

static void every_end(void) {
  char script[4200];
  ends("exit 3", "version=1\nexit_code=3\nsignal=0\noom=0\nend\n");
  snprintf(script, sizeof script, "exec %s power-off", self);
  ends(script, "version=1\nexit_code=0\nsignal=0\noom=0\nend\n");
  snprintf(script, sizeof script, "exec %s reboot", self);
  ends(script, "version=1\nexit_code=0\nsignal=0\noom=0\nend\n");
  begin("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done");
  check(ended() && strncmp(output, "line 0\nline 1\n", 14) == 0 && strstr(output, "\nline 19999\n") != NULL, "its last line is there before the report");
  begin("stty opost onlcr; printf 'one\\ntwo\\r\\nthree\\r four\\n'; printf 'end\\r'; printf '\\n'");
  check(ended() && strcmp(output, "one\ntwo\nthree\r four\nend\n") == 0, "a line ends with a newline, whatever the terminal makes of it");
  snprintf(script, sizeof script, "exec %s crash", self);
  begin(script);
  check(ended() && strstr(report, "signal=0") == NULL && strstr(report, "exit_code=1") != NULL, "a crash is reported as one");
  client_start(&client);
  client_sync(&client);
  uint32_t channel = client_open(&client, "run", TAG_ARGV, in_folder("bad/systemd"), 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(fields_number(&answer.fields, TAG_EXIT_CODE, 0) == 126, "an init that cannot be executed");
  answer_free(&answer);
  check(ended() && reported("version=1\nexit_code=126\n"), "is reported as any program");
}

// The host dies: its commands end, the init does not.
static void host_goes(void) {
  begin("trap 'exit 7' 37; " WAIT);
  check(up(), "an init whose host begins anew");
  uint32_t channel = client_open(&client, "exec", TAG_ARGV, "sh", TAG_ARGV, "-c", TAG_ARGV, "echo here; sleep 1000", 0);
  check(client_until(&client, channel, &answer, "here", 4, true), "with a command");
  answer_free(&answer);
  check(strcmp(client_sync(&client), "running") == 0, "runs on");
  client_exec(&client, &answer, "", "n=0; while [ $n -lt 250 ] && cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -q 'sleep [1]000'; do n=$((n+1)); sleep 0.02; done; cat /proc/1/comm; test $n -lt 250 && echo gone");
  check(strcmp(answer.bytes[1], "systemd\ngone\n") == 0, "and the command of before is gone");
  answer_free(&answer);
  client_open(&client, "shutdown", TAG_GRACE_MS, 8000L, 0);
  check(ended() && reported("version=1\nexit_code=7\n"), "it can be stopped by the new one");
}

static bool write_file(const char *path, const char *text, mode_t mode) {
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
  bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fchmod(fd, mode) == 0;
  if (fd >= 0) close(fd);
  return good;
}

static int in_fork(int (*work)(void)) {
  int status = -1;
  pid_t pid = fork();
  if (pid == 0) _exit(work());
  waitpid(pid, &status, 0);
  return status;
}

static int mount_proc(void) {
  return mount("proc", "/proc", "proc", 0, NULL) < 0;
}

static int try(void) {
  return unshare(CLONE_NEWPID | CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || in_fork(mount_proc) != 0;
}

// As root, or as root of a user namespace, where that is allowed.
static bool may(void) {
  if (geteuid() == 0 && in_fork(try) == 0) return true;
  char map[64];
  snprintf(map, sizeof map, "0 %u 1\n", geteuid());
  return unshare(CLONE_NEWUSER) == 0 && write_file("/proc/self/uid_map", map, 0644) && in_fork(try) == 0;
}

int main(int argc, char **argv) {
  if (argc > 1) return act(argv[1]);
  signal(SIGPIPE, SIG_IGN);
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0 || mkdtemp(folder) == NULL) return 2;
  if (chmod(folder, 0755) < 0 || mkdir(in_folder("other"), 0755) < 0 || mkdir(in_folder("bad"), 0755) < 0) return 2;
  if (!write_file(in_folder("systemd"), "#!/bin/sh\neval \"$SCRIPT\"\n", 0755) || !write_file(in_folder("busybox"), "", 0755)) return 2;
  if (!write_file(in_folder("bad/systemd"), "nothing", 0755)) return 2;
  if (symlink("busybox", in_folder("init")) < 0 || symlink("/bin/sh", in_folder("other/systemd")) < 0) return 2;
  is_recognised();
  client_init = &place;
  if (may()) {
    is_process_1();
    cannot_be_killed_from_inside();
    every_end();
    host_goes();
  } else check(true, "nobody may make a process namespace here: the rest is left to the long tier");
  static const char *const files[] = { "init", "other/systemd", "bad/systemd", "systemd", "busybox" };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(in_folder(files[i]));
  rmdir(in_folder("other"));
  rmdir(in_folder("bad"));
  rmdir(folder);
  return checks_end();
}
