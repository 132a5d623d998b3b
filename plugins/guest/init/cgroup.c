// The control groups of the program and of exec'd commands, and their memory events.
#include "cgroup.h"
#include "files.h"
#include "log.h"
#include "spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COUNTERS_MAX = 16384 };

int cgroups_open(int folder, const char *name) {
  if (mkdirat(folder, name, 0755) < 0 && errno != EEXIST) return -1;
  return openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void cgroups_remove(int folder, const char *name) {
  if (folder >= 0 && unlinkat(folder, name, AT_REMOVEDIR) < 0 && errno != ENOENT) log_problem("the group %s: %s", name, strerror(errno));
}

void cgroups_make(struct cgroups *cgroups, const char *mount_point) {
  *cgroups = (struct cgroups){ -1, -1, -1 };
  if (mount("cgroup2", mount_point, "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
    log_problem("no control groups: %s", strerror(errno));
    return;
  }
  cgroups->root = open(mount_point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (cgroups->root < 0) return;
  file_write(cgroups->root, "cgroup.subtree_control", "+memory");
  int berth = cgroups_open(cgroups->root, "berth");
  if (berth < 0) return;
  file_write(berth, "cgroup.subtree_control", "+memory");
  cgroups->program = cgroups_open(berth, "program");
  cgroups->commands = cgroups_open(berth, "commands");
  close(berth);
}

void cgroups_delegate(const struct cgroups *cgroups) {
  static const char *const controllers[] = { "+cpu", "+cpuset", "+io", "+memory", "+pids" };
  int folders[] = { cgroups->root, cgroups->root < 0 ? -1 : openat(cgroups->root, "berth", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) };
  for (size_t i = 0; i < 2; i++) {
    // One by one, since the kernel may lack any of them.
    for (size_t j = 0; folders[i] >= 0 && j < sizeof controllers / sizeof *controllers; j++) file_write(folders[i], "cgroup.subtree_control", controllers[j]);
  }
  if (folders[1] >= 0) close(folders[1]);
}

uint64_t counter_value(const char *text, const char *name) {
  size_t length = strlen(name);
  for (const char *line = text; line != NULL && *line != 0;) {
    if (strncmp(line, name, length) == 0 && line[length] == ' ') return strtoull(line + length + 1, NULL, 10);
    line = strchr(line, '\n');
    if (line != NULL) line++;
  }
  return 0;
}

// Relative to an open folder, since the guest may mount over the path.
static char *read_counters(int folder, const char *name) {
  int fd = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return NULL;
  char *text = calloc(1, COUNTERS_MAX + 1);
  if (text != NULL && read(fd, text, COUNTERS_MAX) < 0) text[0] = 0;
  close(fd);
  return text;
}

uint64_t cgroups_oom_kills(const struct cgroups *cgroups) {
  char *text = read_counters(cgroups->program, "memory.events");
  if (text == NULL) text = read_counters(proc_folder, "vmstat");
  uint64_t kills = counter_value(text, "oom_kill");
  free(text);
  return kills;
}
