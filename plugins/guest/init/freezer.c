// Stops every process of the program at once, and resumes them, unnoticed by them: the kernel's freezer of control groups.
#include "freezer.h"
#include "cgroup.h"
#include "files.h"
#include "protocol.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static bool read_small(int folder, const char *name, char *text, size_t size) {
  int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t got = read(fd, text, size - 1);
  close(fd);
  text[got > 0 ? got : 0] = 0;
  return got >= 0;
}

static void look(struct freezer_group *group) {
  char text[256];
  ssize_t got = pread(group->events.fd, text, sizeof text - 1, 0);
  text[got > 0 ? got : 0] = 0;
  // A group that the guest has removed meanwhile cannot be read, and contains no processes.
  group->frozen = got < 0 || counter_value(text, "frozen") == 1;
}

static void changed(struct watch *watch, uint32_t events) {
  (void)events;
  look(watch->owner);
}

static bool is_known(const struct freezer *freezer, const char *name) {
  for (size_t i = 0; i < freezer->count; i++) {
    if (strcmp(freezer->groups[i].name, name) == 0) return true;
  }
  return false;
}

static bool add(struct freezer *freezer, const char *name, struct failure *failure) {
  char text[16];
  if (freezer->count == FREEZER_GROUPS_MAX) return fail(failure, E2BIG, NO_EXIT, "the guest has too many control groups");
  int folder = openat(freezer->root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  // The group is gone, or the guest itself has frozen it: then we must not thaw it.
  bool ours = folder >= 0 && read_small(folder, "cgroup.freeze", text, sizeof text) && text[0] == '0';
  int events = ours ? openat(folder, "cgroup.events", O_RDONLY | O_CLOEXEC) : -1;
  int error = events < 0 ? 0 : file_write(folder, "cgroup.freeze", "1");
  if (events < 0 || error != 0) {
    if (folder >= 0) close(folder);
    if (events >= 0) close(events);
    return error == 0 || error == ENODEV || fail(failure, error, NO_EXIT, "the program cannot be frozen: %s", strerror(error));
  }
  struct freezer_group *group = &freezer->groups[freezer->count++];
  *group = (struct freezer_group){ .folder = folder };
  snprintf(group->name, sizeof group->name, "%s", name);
  watch_init(&group->events, events, changed, group);
  watch_want(freezer->epoll, &group->events, EPOLLPRI);
  look(group);
  return true;
}

static bool add_all(struct freezer *freezer, struct failure *failure) {
  int fd = openat(freezer->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *folder = fd < 0 ? NULL : fdopendir(fd);
  bool good = folder != NULL || fail(failure, errno, NO_EXIT, "the control groups cannot be read: %s", strerror(errno));
  for (struct dirent *entry; good && (entry = readdir(folder)) != NULL;) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && !is_known(freezer, entry->d_name)) good = add(freezer, entry->d_name, failure);
  }
  if (folder != NULL) closedir(folder);
  else if (fd >= 0) close(fd);
  return good;
}

bool freezer_freeze(struct freezer *freezer, int epoll, int root, struct failure *failure) {
  freezer->epoll = epoll;
  freezer->root = root;
  freezer->count = 0;
  if (root < 0) return fail(failure, EOPNOTSUPP, NO_EXIT, "this guest has no control groups, so its program cannot be frozen");
  return add_all(freezer, failure);
}

bool freezer_is_frozen(struct freezer *freezer, bool *frozen, struct failure *failure) {
  *frozen = false;
  for (size_t i = 0; i < freezer->count; i++) {
    if (!freezer->groups[i].frozen) return true;
  }
  // No process runs that could make more groups; the groups that were made before the freeze are found now.
  size_t before = freezer->count;
  if (!add_all(freezer, failure)) return false;
  *frozen = freezer->count == before;
  return *frozen || freezer_is_frozen(freezer, frozen, failure);
}

void freezer_thaw(struct freezer *freezer) {
  for (size_t i = 0; i < freezer->count; i++) {
    struct freezer_group *group = &freezer->groups[i];
    watch_close(freezer->epoll, &group->events);
    file_write(group->folder, "cgroup.freeze", "0");
    close(group->folder);
  }
  freezer->count = 0;
}
