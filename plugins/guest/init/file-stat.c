// The kind `stat`, and the facts about a path that `get` sends too.
#include "file-stat.h"
#include "protocol.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *file_path(const struct fields *request) {
  const char *path = fields_string(request, TAG_PATH, "");
  return path[0] == 0 ? "/" : path;
}

void write_error(struct writer *writer, int error, const char *path) {
  char message[512];
  snprintf(message, sizeof message, "%.300s: %s", path, strerror(error));
  write_string(writer, TAG_ERROR, message);
  write_number(writer, TAG_ERRNO, (uint64_t)error);
}

static const char *type_of(mode_t mode) {
  if (S_ISREG(mode)) return "file";
  if (S_ISDIR(mode)) return "dir";
  return S_ISLNK(mode) ? "symlink" : "other";
}

// Sizes below zero are those of a file system that some program in the guest serves.
bool file_is_absurd(const struct stat *facts) {
  return (uint64_t)facts->st_size >= SIZE_TOLD_MAX;
}

void write_facts(struct writer *writer, const struct stat *facts) {
  write_string(writer, TAG_TYPE, type_of(facts->st_mode));
  write_number(writer, TAG_MODE, facts->st_mode & 07777);
  write_number(writer, TAG_UID, facts->st_uid);
  write_number(writer, TAG_GID, facts->st_gid);
  write_number(writer, TAG_MTIME, facts->st_mtime < 0 ? 0 : (uint64_t)facts->st_mtime);
  uint64_t size = file_is_absurd(facts) ? SIZE_TOLD_MAX : (uint64_t)facts->st_size;
  write_number(writer, TAG_SIZE, S_ISREG(facts->st_mode) ? size : 0);
}

void file_stat(const struct fields *request, struct writer *result) {
  const char *path = file_path(request);
  bool follow = fields_number(request, TAG_FOLLOW, 0) != 0;
  struct stat facts;
  if (fstatat(AT_FDCWD, path, &facts, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0) {
    if (errno == ENOENT || errno == ENOTDIR) write_number(result, TAG_EXISTS, 0);
    else write_error(result, errno, path);
    return;
  }
  write_number(result, TAG_EXISTS, 1);
  write_facts(result, &facts);
  char target[PATH_MAX];
  ssize_t length = S_ISLNK(facts.st_mode) ? readlink(path, target, sizeof target) : -1;
  if (length >= 0) write_field(result, TAG_LINK_TARGET, target, (size_t)length);
}
