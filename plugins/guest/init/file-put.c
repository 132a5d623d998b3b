// The kind `put`: makes a folder, or writes a file beside its target and renames it when it is complete.
#include "file-put.h"
#include "file-stat.h"
#include "files.h"
#include "protocol.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 16, CONTENT_STEP = 65536 };

// The signal handler needs it; this process serves one request only.
static char temporary[PATH_MAX];

static void remove_temporary(int number) {
  if (temporary[0] != 0) unlink(temporary);
  _exit(128 + number);
}

static bool name_is_plain(const char *name) {
  return name[0] != 0 && strchr(name, '/') == NULL && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static size_t folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

// Replaces a symbolic link at the end of the path by its target, repeatedly; the target need not exist.
static int follow_links(char target[PATH_MAX]) {
  for (int i = 0; i < LINKS_MAX; i++) {
    char link[PATH_MAX], next[PATH_MAX * 2];
    ssize_t length = readlink(target, link, sizeof link - 1);
    if (length < 0) return 0;
    link[length] = 0;
    int folder = link[0] == '/' ? 0 : (int)folder_length(target);
    if (snprintf(next, sizeof next, "%.*s%s", folder, target, link) >= PATH_MAX) return ENAMETOOLONG;
    strcpy(target, next);
  }
  return ELOOP;
}

// docker-cp's rule: into an existing folder under `basename`, otherwise at the path itself.
static int find_target(const struct fields *request, char target[PATH_MAX]) {
  const char *path = file_path(request);
  const char *basename = fields_string(request, TAG_BASENAME, "");
  if (strlen(path) >= PATH_MAX) return ENAMETOOLONG;
  strcpy(target, path);
  size_t length = strlen(target);
  while (length > 1 && target[length - 1] == '/') target[--length] = 0;
  struct stat facts;
  if (basename[0] != 0 && stat(target, &facts) == 0 && S_ISDIR(facts.st_mode)) {
    if (!name_is_plain(basename)) return EINVAL;
    if (snprintf(target + length, PATH_MAX - length, "%s%s", length == 1 ? "" : "/", basename) >= (int)(PATH_MAX - length)) {
      return ENAMETOOLONG;
    }
  }
  return follow_links(target);
}

static int apply(int fd, const struct fields *request, mode_t mode) {
  uid_t uid = (uid_t)fields_number(request, TAG_UID, 0);
  gid_t gid = (gid_t)fields_number(request, TAG_GID, 0);
  // Owner first: a change of owner removes set-uid bits.
  if (fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0) return errno;
  const struct field *mtime = fields_find(request, TAG_MTIME);
  if (mtime == NULL) return 0;
  struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, { .tv_sec = (time_t)fields_number(request, TAG_MTIME, 0) } };
  return futimens(fd, times) < 0 ? errno : 0;
}

static int put_folder(const struct fields *request, const char *target) {
  // An existing folder keeps its mode: a copy into /tmp must not remove its sticky bit.
  struct stat facts;
  if (stat(target, &facts) == 0) return S_ISDIR(facts.st_mode) ? 0 : ENOTDIR;
  int error = folder_make(target, 0755);
  if (error != 0) return error;
  int fd = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  error = apply(fd, request, (mode_t)fields_number(request, TAG_MODE, 0755) & 07777);
  close(fd);
  return error;
}

static int copy(int input, int fd, uint64_t *total) {
  static char bytes[CONTENT_STEP];
  for (;;) {
    ssize_t got = read(input, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return 0;
    if (!write_all(fd, bytes, (size_t)got)) return errno;
    *total += (uint64_t)got;
  }
}

static int open_temporary(const char *target) {
  uint64_t random;
  if (getrandom(&random, sizeof random, 0) < 0) return -1;
  int length = snprintf(temporary, sizeof temporary, "%.*s.berth-put-%016llx", (int)folder_length(target), target,
                        (unsigned long long)random);
  if (length >= (int)sizeof temporary) {
    temporary[0] = 0;
    errno = ENAMETOOLONG;
    return -1;
  }
  struct sigaction action = { .sa_handler = remove_temporary };
  sigaction(SIGTERM, &action, NULL);
  return open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int put_file(const struct fields *request, const char *target, int input, uint64_t *total) {
  struct stat facts;
  if (lstat(target, &facts) == 0 && S_ISDIR(facts.st_mode)) return EISDIR;
  int error = folder_make_parents(target, 0755);
  if (error != 0) return error;
  int fd = open_temporary(target);
  if (fd < 0) return errno;
  error = copy(input, fd, total);
  if (error == 0) error = apply(fd, request, (mode_t)fields_number(request, TAG_MODE, 0644) & 07777);
  if (close(fd) < 0 && error == 0) error = errno;
  if (error == 0 && rename(temporary, target) < 0) error = errno;
  if (error != 0) unlink(temporary);
  return error;
}

void file_put(const struct fields *request, int input, struct writer *result) {
  char target[PATH_MAX];
  uint64_t total = 0;
  int error = find_target(request, target);
  bool folder = strcmp(fields_string(request, TAG_TYPE, "file"), "dir") == 0;
  if (error == 0) error = folder ? put_folder(request, target) : put_file(request, target, input, &total);
  if (error != 0) write_error(result, error, file_path(request));
  else write_number(result, TAG_BYTES, total);
}
