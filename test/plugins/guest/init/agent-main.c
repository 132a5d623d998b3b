// The agent on an ordinary machine, for tests of the host's side: serves one connection of a unix socket, in the machine's own root.
// usage: agent-main SOCKET OUTPUT_FILE REPORT_FILE
#include "agent.h"
#include "spawn.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct agent agent;

static bool prepare(const struct workload *workload, struct cgroups *cgroups, struct failure *failure) {
  (void)workload, (void)cgroups, (void)failure;
  return true;
}

static bool identify(const struct identity *now, const struct identity *wake, struct failure *failure) {
  (void)now, (void)wake, (void)failure;
  return true;
}

static void finish(void) {
}

static const struct platform platform = { .is_init = false, .prepare = prepare, .identify = identify, .finish = finish };

static int accept_one(const char *path) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (strlen(path) >= sizeof address.sun_path) return -1;
  strcpy(address.sun_path, path);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 1) < 0) return -1;
  int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  close(listener);
  return fd;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  int output = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  int report = open(argv[3], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  int fd = accept_one(argv[1]);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  proc_folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || output < 0 || report < 0 || !agent_init(&agent, &platform, fd, output, report)) {
    perror("agent-main");
    return 1;
  }
  agent_run(&agent);
  return 0;
}
