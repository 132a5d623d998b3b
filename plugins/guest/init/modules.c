// Loads the kernel modules that a list file of the initrd names.
#include "modules.h"
#include "files.h"
#include "log.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LIST_MAX = 65536 };

static void load(int initrd, const char *name, const char *parameters) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "lib/modules/%s", name);
  int fd = openat(initrd, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || (syscall(SYS_finit_module, fd, parameters, 0) < 0 && errno != EEXIST)) {
    log_problem("module %s: %s", name, strerror(errno));
  }
  if (fd < 0) return;
  close(fd);
  unlinkat(initrd, path, 0);
}

void modules_load(int initrd, const char *list_path) {
  char *list = file_read_at(initrd, list_path, LIST_MAX, NULL);
  if (list == NULL) {
    log_problem("%s: %s", list_path, strerror(errno));
    return;
  }
  char *rest = NULL;
  for (char *line = strtok_r(list, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
    char *parameters = strchr(line, ' ');
    if (parameters != NULL) *parameters++ = 0;
    if (line[0] != 0) load(initrd, line, parameters == NULL ? "" : parameters);
  }
  free(list);
}
