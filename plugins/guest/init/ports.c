// Finds the virtio-serial ports by name and opens them.
#include "ports.h"
#include "log.h"
#include "uevents.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PORTS_WAIT_MS = 10000, NAME_MAX_LENGTH = 64 };

static int *wanted(struct ports *ports, const char *name) {
  if (strcmp(name, "berth.agent") == 0) return &ports->agent;
  if (strcmp(name, "berth.output") == 0) return &ports->output;
  return strcmp(name, "berth.report") == 0 ? &ports->report : NULL;
}

// A port's name arrives after the port itself, so it may not exist yet.
static bool read_name(int folder, const char *port, char name[NAME_MAX_LENGTH]) {
  char path[NAME_MAX_LENGTH + 8];
  if (snprintf(path, sizeof path, "%s/name", port) >= (int)sizeof path) return false;
  int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t length = read(fd, name, NAME_MAX_LENGTH - 1);
  close(fd);
  while (length > 0 && name[length - 1] == '\n') length--;
  if (length <= 0) return false;
  name[length] = 0;
  return true;
}

static void open_port(struct ports *ports, int folder, const char *port) {
  char name[NAME_MAX_LENGTH], path[NAME_MAX_LENGTH + 8];
  int *fd = read_name(folder, port, name) ? wanted(ports, name) : NULL;
  if (fd == NULL || *fd >= 0) return;
  if (snprintf(path, sizeof path, "/dev/%s", port) >= (int)sizeof path) return;
  *fd = open(path, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (*fd < 0) log_problem("port %s: %s", name, strerror(errno));
}

static bool all_open(void *owner) {
  struct ports *ports = owner;
  DIR *folder = opendir("/sys/class/virtio-ports");
  if (folder == NULL) return false;
  struct dirent *entry;
  while ((entry = readdir(folder)) != NULL) {
    if (entry->d_name[0] != '.') open_port(ports, dirfd(folder), entry->d_name);
  }
  closedir(folder);
  return ports->agent >= 0 && ports->output >= 0 && ports->report >= 0;
}

bool ports_open(struct ports *ports) {
  *ports = (struct ports){ -1, -1, -1 };
  if (!uevents_wait("/virtio-ports/", all_open, ports, PORTS_WAIT_MS)) {
    log_problem("not every port was found: agent %d, output %d, report %d", ports->agent >= 0, ports->output >= 0, ports->report >= 0);
  }
  return ports->agent >= 0;
}

void ports_close(struct ports *ports) {
  if (ports->output >= 0) close(ports->output);
  if (ports->report >= 0) close(ports->report);
  if (ports->agent >= 0) close(ports->agent);
  *ports = (struct ports){ -1, -1, -1 };
}
