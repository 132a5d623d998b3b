#include "files.h"
#include "cut.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

// The names of plugins/instances/folder/paths.ts. A VMM goes on in the rotated file until it is told of the next one.
static const char *const LOGS[] = { "output.log", "output.log.1", "vmm.log", "vmm.log.1" };
static const char REPORT[] = "report";
enum { LOG_COUNT = sizeof LOGS / sizeof LOGS[0] };

// No VMM writes more than a gigabyte in a second: a mebibyte of room is good for a millisecond.
enum { BYTES_PER_MS = 1 << 20, LONGEST_PAUSE_MS = 20 };

// One watch: of an instance's folder, or of a file in it.
struct watch {
  int descriptor;
  char folder[NAME_MAX + 1];
};

static int root, inotify = -1, root_watch;
static const char *root_path;
static long long log_limit, report_limit;
static struct watch *watches;
static size_t watch_count, watch_room;

static struct watch *watch_of(int descriptor) {
  for (size_t n = 0; n < watch_count; n++) if (watches[n].descriptor == descriptor) return &watches[n];
  return NULL;
}

static void watch(const char *folder, const char *name, unsigned mask) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s/%s%s%s", root_path, folder, *name == 0 ? "" : "/", name) >= (int)sizeof path) return;
  int descriptor = inotify_add_watch(inotify, path, mask | IN_DONT_FOLLOW);
  if (descriptor < 0) {
    // Most of the files are not there yet, or not any more.
    if (errno != ENOENT && errno != ENOTDIR) perror("berth-log-guard: a file cannot be watched");
    return;
  }
  if (watch_of(descriptor) != NULL) return;
  if (watch_count == watch_room) {
    size_t room = watch_room == 0 ? 64 : watch_room * 2;
    struct watch *larger = realloc(watches, room * sizeof *larger);
    if (larger == NULL) return;
    watches = larger;
    watch_room = room;
  }
  watches[watch_count].descriptor = descriptor;
  snprintf(watches[watch_count].folder, sizeof watches->folder, "%s", folder);
  watch_count++;
}

static void forget(int descriptor) {
  struct watch *found = watch_of(descriptor);
  if (found != NULL) *found = watches[--watch_count];
}

// Returns the room that is left in a file; cuts the file first when there is none.
static long long check(const char *folder, const char *name, long long limit) {
  char path[2 * NAME_MAX + 2];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  struct stat found;
  if (fstatat(root, path, &found, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(found.st_mode) || found.st_blocks == 0) return log_limit;
  long long room = limit - (long long)found.st_blocks * 512;
  if (room >= 0) return room;
  int fd = openat(root, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return log_limit;
  room = limit - cut(fd, limit);
  close(fd);
  return room;
}

static long long check_folder(const char *folder) {
  long long least = check(folder, REPORT, report_limit);
  for (size_t n = 0; n < LOG_COUNT; n++) {
    long long room = check(folder, LOGS[n], log_limit);
    if (room < least) least = room;
  }
  return least;
}

static void watch_files(const char *folder) {
  for (size_t n = 0; n < LOG_COUNT; n++) watch(folder, LOGS[n], IN_MODIFY);
  watch(folder, REPORT, IN_MODIFY);
}

static long long take(const char *folder) {
  // Names with a dot are the server's own: a folder is renamed to one on its removal.
  if (*folder == '.') return log_limit;
  watch(folder, "", IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
  watch_files(folder);
  return check_folder(folder);
}

static long long take_all(void) {
  long long least = log_limit;
  // A description of its own: otherwise it would share its position in the folder with the root's.
  DIR *entries = opendir(root_path);
  if (entries == NULL) return least;
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    long long room = take(entry->d_name);
    if (room < least) least = room;
  }
  closedir(entries);
  return least;
}

bool files_open(int folder, const char *path, long long log_bytes, long long report_bytes) {
  root = folder;
  root_path = path;
  log_limit = log_bytes;
  report_limit = report_bytes;
  inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (inotify < 0) return false;
  root_watch = inotify_add_watch(inotify, path, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
  if (root_watch < 0) return false;
  take_all();
  return true;
}

int files_descriptor(void) { return inotify; }

static long long handle(const struct inotify_event *event) {
  if ((event->mask & IN_Q_OVERFLOW) != 0) return take_all();
  if (event->wd == root_watch) return event->len > 0 && (event->mask & IN_ISDIR) != 0 ? take(event->name) : log_limit;
  if ((event->mask & IN_IGNORED) != 0) {
    forget(event->wd);
    return log_limit;
  }
  const struct watch *found = watch_of(event->wd);
  if (found == NULL) return log_limit;
  char folder[sizeof found->folder];
  memcpy(folder, found->folder, sizeof folder);
  if ((event->mask & IN_MODIFY) == 0) watch_files(folder);
  return check_folder(folder);
}

long files_look(void) {
  static char events[64 * 1024] __attribute__((aligned(__alignof__(struct inotify_event))));
  long long least = log_limit;
  ssize_t length = read(inotify, events, sizeof events);
  int last = -1;
  for (ssize_t at = 0; at < length;) {
    const struct inotify_event *event = (const struct inotify_event *)(events + at);
    at += (ssize_t)(sizeof *event + event->len);
    // Writes come in rows; one check is enough for a row.
    if ((event->mask & IN_MODIFY) != 0 && event->wd == last) continue;
    last = (event->mask & IN_MODIFY) != 0 ? event->wd : -1;
    long long room = handle(event);
    if (room < least) least = room;
  }
  long long pause = least / BYTES_PER_MS;
  return pause < 1 ? 1 : pause > LONGEST_PAUSE_MS ? LONGEST_PAUSE_MS : (long)pause;
}
