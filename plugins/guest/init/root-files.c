// Files below an untrusted root: no link leads out of it, nothing that is mounted in it is touched, and nothing blocks.
#include "root-files.h"
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINKS_MAX = 16, DEPTH_MAX = 16 };

#define TEMPORARY ".berth-new"

static int open_in_root(int root, const char *path) {
  struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS };
  return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

// Splits a path into its folder and its last name; false when the last name is invalid.
static bool split(const char *path, char folder[PATH_MAX], char name[NAME_MAX + 1]) {
  size_t length = strlen(path);
  while (length > 0 && path[length - 1] == '/') length--;
  size_t start = length;
  while (start > 0 && path[start - 1] != '/') start--;
  if (start == length || length - start > NAME_MAX || start >= PATH_MAX - 1) return false;
  memcpy(name, path + start, length - start);
  name[length - start] = 0;
  memcpy(folder, path, start);
  strcpy(folder + start, start == 0 ? "/" : "");
  return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int make_folder(int root, const char *path, int depth) {
  char above[PATH_MAX], name[NAME_MAX + 1];
  int fd = open_in_root(root, path);
  if (fd >= 0 || errno != ENOENT) return fd;
  if (depth == DEPTH_MAX || !split(path, above, name)) {
    errno = ENOENT;
    return -1;
  }
  int parent = make_folder(root, above, depth + 1);
  if (parent < 0) return -1;
  // An entry that exists and was not found is a link to a missing target; opening it once more gives that error.
  int error = mkdirat(parent, name, 0755) < 0 && errno != EEXIST ? errno : 0;
  close(parent);
  errno = error;
  return error == 0 ? open_in_root(root, path) : -1;
}

int root_open_folder(int root, const char *path, bool make) {
  return make ? make_folder(root, path, 0) : open_in_root(root, path);
}

int place_in(int folder, const char *name, struct place *place) {
  place->folder = folder;
  if (name != place->name) snprintf(place->name, sizeof place->name, "%s", name);
  place->exists = fstatat(folder, name, &place->facts, AT_SYMLINK_NOFOLLOW) == 0;
  return place->exists || errno == ENOENT ? 0 : errno;
}

int root_find(int root, const char *path, struct place *place) {
  char now[PATH_MAX], above[PATH_MAX], name[NAME_MAX + 1], link[PATH_MAX];
  if (snprintf(now, sizeof now, "%s", path) >= (int)sizeof now) return ENAMETOOLONG;
  for (int i = 0; i < LINKS_MAX; i++) {
    if (!split(now, above, name)) return EISDIR;
    int folder = open_in_root(root, above);
    if (folder < 0) return errno;
    ssize_t length = readlinkat(folder, name, link, sizeof link - 1);
    if (length < 0) {
      int error = place_in(folder, name, place);
      if (error != 0) close(folder);
      return error;
    }
    close(folder);
    link[length] = 0;
    int used = snprintf(now, sizeof now, "%s%s", link[0] == '/' ? "" : above, link);
    if (used < 0 || used >= (int)sizeof now) return ENAMETOOLONG;
  }
  return ELOOP;
}

// Other kinds of files cannot be opened without side effects. Nobody changes it meanwhile: no program runs yet.
static int open_file(const struct place *place) {
  errno = ENOENT;
  if (!place->exists) return -1;
  errno = EINVAL;
  if (!S_ISREG(place->facts.st_mode)) return -1;
  return openat(place->folder, place->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static ssize_t read_at(int fd, char *into, size_t length, off_t at) {
  size_t have = 0;
  while (have < length) {
    ssize_t got = pread(fd, into + have, length - have, at + (off_t)have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    have += (size_t)got;
  }
  return (ssize_t)have;
}

char *place_read(const struct place *place, size_t limit, size_t *length) {
  int fd = open_file(place);
  if (fd < 0) return NULL;
  size_t size = (size_t)place->facts.st_size;
  char *text = size > limit ? NULL : malloc(size + 1);
  int error = size > limit ? EFBIG : ENOMEM;
  ssize_t got = text == NULL ? -1 : read_at(fd, text, size, 0);
  if (text != NULL && got < 0) {
    error = errno;
    free(text);
    text = NULL;
  }
  close(fd);
  if (text == NULL) {
    errno = error;
    return NULL;
  }
  text[got] = 0;
  *length = (size_t)got;
  return text;
}

ssize_t place_read_end(const struct place *place, char *into, size_t length) {
  off_t size = place->facts.st_size;
  int fd = open_file(place);
  if (fd < 0) return -1;
  off_t start = size < (off_t)length ? 0 : size - (off_t)length;
  ssize_t got = read_at(fd, into, (size_t)(size - start), start);
  close(fd);
  return got;
}

static bool temporary_name(const struct place *place, char name[NAME_MAX + 1]) {
  return snprintf(name, NAME_MAX + 1, "%s" TEMPORARY, place->name) <= NAME_MAX;
}

static int fill(int fd, const struct place *place, const char *text, size_t length, bool durable) {
  bool keeps = place->exists && S_ISREG(place->facts.st_mode);
  if (!write_all(fd, text, length)) return errno;
  if (keeps && (fchown(fd, place->facts.st_uid, place->facts.st_gid) < 0 || fchmod(fd, place->facts.st_mode & 07777) < 0)) return errno;
  return durable && fdatasync(fd) < 0 ? errno : 0;
}

int place_write(struct place *place, const char *text, size_t length, bool durable) {
  char temporary[NAME_MAX + 1];
  if (!temporary_name(place, temporary)) return ENAMETOOLONG;
  unlinkat(place->folder, temporary, 0);
  int fd = openat(place->folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0) return errno;
  int error = fill(fd, place, text, length, durable);
  close(fd);
  if (error == 0 && renameat(place->folder, temporary, place->folder, place->name) < 0) error = errno;
  if (error != 0) {
    unlinkat(place->folder, temporary, 0);
    return error;
  }
  return place_in(place->folder, place->name, place);
}

int place_link(const struct place *place, const char *target) {
  char temporary[NAME_MAX + 1], now[PATH_MAX];
  ssize_t length = readlinkat(place->folder, place->name, now, sizeof now - 1);
  if (length >= 0) {
    now[length] = 0;
    if (strcmp(now, target) == 0) return 0;
  }
  if (!temporary_name(place, temporary)) return ENAMETOOLONG;
  unlinkat(place->folder, temporary, 0);
  if (symlinkat(target, place->folder, temporary) < 0) return errno;
  if (renameat(place->folder, temporary, place->folder, place->name) == 0) return 0;
  int error = errno;
  unlinkat(place->folder, temporary, 0);
  return error;
}
