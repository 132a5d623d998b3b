#include "vmms.h"
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool vmms_work_below(const char *folder) {
  DIR *processes = opendir("/proc");
  // When in doubt, say that there are some.
  if (processes == NULL) return true;
  size_t length = strlen(folder);
  bool found = false;
  for (struct dirent *entry; !found && (entry = readdir(processes)) != NULL;) {
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    char link[sizeof entry->d_name + 16], target[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%s/cwd", entry->d_name);
    ssize_t size = readlink(link, target, sizeof target - 1);
    found = size > (ssize_t)length && memcmp(target, folder, length) == 0 && target[length] == '/';
  }
  closedir(processes);
  return found;
}
