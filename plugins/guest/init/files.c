// Small files: read one whole, write one, replace one, make folders.
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 4096 };

bool write_all(int fd, const void *bytes, size_t length) {
  const char *from = bytes;
  while (length > 0) {
    ssize_t written = write(fd, from, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    from += written;
    length -= (size_t)written;
  }
  return true;
}

// Into memory that grows with the file: most are small, and much memory at once would come from the kernel and go back to it. Files of the kernel do not know their size.
static char *read_growing(int fd, size_t limit, size_t *length) {
  size_t room = limit < PIECE ? limit : PIECE, have = 0;
  char *text = malloc(room + 1);
  while (text != NULL) {
    ssize_t got = read(fd, text + have, room - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    have += (size_t)got;
    if (got == 0 || have == limit) {
      text[have] = 0;
      *length = have;
      return text;
    }
    if (have < room) continue;
    room = room > limit / 2 ? limit : room * 2;
    char *larger = realloc(text, room + 1);
    if (larger == NULL) break;
    text = larger;
  }
  int error = errno;
  free(text);
  errno = error;
  return NULL;
}

char *file_read_at(int folder, const char *path, size_t limit, size_t *length) {
  int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return NULL;
  struct stat facts;
  char *text = NULL;
  size_t have = 0;
  if (fstat(fd, &facts) == 0 && !S_ISREG(facts.st_mode)) errno = EINVAL;
  else if ((text = read_growing(fd, limit, &have)) != NULL && length != NULL) *length = have;
  int error = errno;
  close(fd);
  errno = error;
  return text;
}

char *file_read(const char *path, size_t limit, size_t *length) {
  return file_read_at(AT_FDCWD, path, limit, length);
}

int file_write(int folder, const char *path, const char *text) {
  int fd = openat(folder, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return errno;
  int error = write_all(fd, text, strlen(text)) ? 0 : errno;
  close(fd);
  return error;
}

int file_replace(int folder, const char *name, const char *text, mode_t mode) {
  char temporary[NAME_MAX + 1];
  if (snprintf(temporary, sizeof temporary, "%s.berth-new", name) >= (int)sizeof temporary) return ENAMETOOLONG;
  unlinkat(folder, temporary, 0);
  int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0) return errno;
  int error = write_all(fd, text, strlen(text)) ? 0 : errno;
  close(fd);
  if (error == 0 && renameat(folder, temporary, folder, name) < 0) error = errno;
  if (error != 0) unlinkat(folder, temporary, 0);
  return error;
}

static int make_one(const char *path, mode_t mode) {
  if (mkdir(path, mode) == 0) return 0;
  int error = errno;
  struct stat facts;
  if (error == EEXIST) return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode) ? 0 : ENOTDIR;
  return error;
}

int folder_make_parents(const char *path, mode_t mode) {
  char part[PATH_MAX];
  size_t length = strlen(path);
  if (length >= sizeof part) return ENAMETOOLONG;
  memcpy(part, path, length + 1);
  while (length > 1 && part[length - 1] == '/') part[--length] = 0;
  for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    int error = make_one(part, mode);
    if (error != 0) return error;
    *slash = '/';
  }
  return 0;
}

int folder_make(const char *path, mode_t mode) {
  struct stat facts;
  if (stat(path, &facts) == 0) return S_ISDIR(facts.st_mode) ? 0 : ENOTDIR;
  int error = folder_make_parents(path, mode);
  return error != 0 ? error : make_one(path, mode);
}
