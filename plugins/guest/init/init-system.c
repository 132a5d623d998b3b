// An image whose program is an init: recognizes it, and knows which signal stops it.
#include "init-system.h"
#include "environment.h"
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

// By the name alone, so that any other program costs only a comparison. Like podman's `--systemd`, with the folders of other inits: /init is
// that of s6-overlay, which refuses to be anything but process 1. A script /app/init is not an init.
static bool is_named(const char *command) {
  static const char *const folders[] = { "", "/", "/sbin/", "/bin/", "/usr/sbin/", "/usr/bin/", "/usr/local/sbin/" };
  const char *name = base_name(command);
  if (strcmp(name, "systemd") == 0) return true;
  if (strcmp(name, "init") != 0) return false;
  size_t length = (size_t)(name - command);
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    if (strlen(folders[i]) == length && strncmp(command, folders[i], length) == 0) return true;
  }
  return false;
}

static bool find(const struct workload *workload, char file[PATH_MAX]) {
  const char *command = workload->argv[0], *path = DEFAULT_PATH;
  char candidate[PATH_MAX];
  if (strchr(command, '/') != NULL) return realpath(command, file) != NULL;
  for (char *const *item = workload->env; *item != NULL; item++) {
    if (strncmp(*item, "PATH=", 5) == 0) path = *item + 5;
  }
  while (path_next(&path, command, candidate, sizeof candidate)) {
    if (realpath(candidate, file) != NULL) return true;
  }
  return false;
}

enum init_system init_system_of(const struct workload *workload) {
  char file[PATH_MAX];
  if (!is_named(workload->argv[0])) return INIT_NONE;
  if (!find(workload, file)) return INIT_OTHER;
  if (strcmp(base_name(file), "systemd") == 0) return INIT_SYSTEMD;
  if (strcmp(base_name(file), "busybox") == 0) return INIT_BUSYBOX;
  return strcmp(file, "/usr/sbin/init") == 0 || strcmp(file, "/sbin/init") == 0 ? INIT_SYSV : INIT_OTHER;
}

int init_system_stop_signal(enum init_system init, int signal) {
  // SIGTERM is the host's default for an image without a stop signal. None of these inits stops on it: systemd executes itself anew,
  // busybox reboots, the init of System V does nothing.
  if (signal != SIGTERM) return signal;
  if (init == INIT_SYSTEMD) return SIGRTMIN + 3; // halt.target: systemd(1), and what podman sends
  if (init == INIT_BUSYBOX) return SIGUSR2;      // power off: busybox' init.c
  // inittab(5): `ctrlaltdel`, a shutdown for a reboot, which here is an end like any other. Debian's inittab ignores SIGPWR, which LXC sends.
  if (init == INIT_SYSV) return SIGINT;
  return signal;
}

bool init_system_switched_off(int wait_status) {
  // reboot(2): in a process namespace its process 1 ends, by SIGINT for power off and halt, by SIGHUP for a restart. These signals have no other
  // cause: process 1 does not get signals that it does not handle.
  return WIFSIGNALED(wait_status) && (WTERMSIG(wait_status) == SIGINT || WTERMSIG(wait_status) == SIGHUP);
}
