// The kind `get`: sends a file, or a folder with all that is in it, as a sequence of entries.
// Everything is opened relative to its folder and never through a link, so a guest that moves files meanwhile can only confuse itself.
#include "file-get.h"
#include "file-stat.h"
#include "files.h"
#include "protocol.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { DEPTH_MAX = 256, STEP = 65536, SIZELESS_MAX = 1 << 20 };

struct walk {
  int output;
  char path[PATH_MAX]; // relative to what was asked for
  size_t path_length;
};

// False when the reader is gone, which ends the walk.
static bool send_entry(struct walk *walk, const struct writer *entry) {
  uint8_t length[4];
  for (int i = 0; i < 4; i++) length[i] = (uint8_t)(entry->length >> (8 * i));
  return write_all(walk->output, length, sizeof length) && write_all(walk->output, entry->bytes, entry->length);
}

static bool send_trouble(struct walk *walk, int error) {
  uint8_t bytes[PATH_MAX + 1024];
  struct writer entry = { .bytes = bytes, .capacity = sizeof bytes };
  write_string(&entry, TAG_PATH, walk->path);
  write_error(&entry, error, walk->path);
  return send_entry(walk, &entry);
}

static bool send_facts(struct walk *walk, const struct stat *facts, const char *link, size_t link_length) {
  uint8_t bytes[PATH_MAX * 2 + 1024];
  struct writer entry = { .bytes = bytes, .capacity = sizeof bytes };
  write_string(&entry, TAG_PATH, walk->path);
  write_facts(&entry, facts);
  if (link != NULL) write_field(&entry, TAG_LINK_TARGET, link, link_length);
  return send_entry(walk, &entry);
}

// Exactly `size` bytes, whatever happens to the file meanwhile.
static bool send_content(struct walk *walk, int fd, uint64_t size) {
  static char bytes[STEP];
  bool whole = true;
  while (size > 0) {
    size_t want = size < sizeof bytes ? (size_t)size : sizeof bytes;
    ssize_t got = whole ? read(fd, bytes, want) : 0;
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      whole = false;
      memset(bytes, 0, want);
      got = (ssize_t)want;
    }
    if (!write_all(walk->output, bytes, (size_t)got)) return false;
    size -= (uint64_t)got;
  }
  return true;
}

// Files of /proc and /sys have size 0 until they are read.
static bool send_sizeless(struct walk *walk, int fd, struct stat *facts) {
  static char bytes[SIZELESS_MAX];
  size_t have = 0;
  while (have < sizeof bytes) {
    ssize_t got = read(fd, bytes + have, sizeof bytes - have);
    if (got <= 0) break;
    have += (size_t)got;
  }
  facts->st_size = (off_t)have;
  return send_facts(walk, facts, NULL, 0) && write_all(walk->output, bytes, have);
}

static bool send_file(struct walk *walk, int fd, struct stat *facts) {
  if (facts->st_size == 0) return send_sizeless(walk, fd, facts);
  if (file_is_absurd(facts)) return send_trouble(walk, EFBIG);
  return send_facts(walk, facts, NULL, 0) && send_content(walk, fd, (uint64_t)facts->st_size);
}

static bool send_link(struct walk *walk, int folder, const char *name, const struct stat *facts) {
  char target[PATH_MAX];
  ssize_t length = readlinkat(folder, name, target, sizeof target);
  return length < 0 ? send_trouble(walk, errno) : send_facts(walk, facts, target, (size_t)length);
}

// Files that the kernel generates are no content of the instance, and may have no end.
static bool is_kernel_made(int fd) {
  struct statfs system;
  if (fstatfs(fd, &system) < 0) return false;
  switch ((unsigned long)system.f_type) {
    case PROC_SUPER_MAGIC: case SYSFS_MAGIC: case CGROUP2_SUPER_MAGIC: case CGROUP_SUPER_MAGIC: case DEVPTS_SUPER_MAGIC:
    case DEBUGFS_MAGIC: case TRACEFS_MAGIC: case SECURITYFS_MAGIC: case BPF_FS_MAGIC:
      return true;
    default:
      return false;
  }
}

static bool walk_entry(struct walk *walk, int folder, const char *name, bool follow, dev_t device, int depth);

static bool append_name(struct walk *walk, const char *name) {
  size_t room = sizeof walk->path - walk->path_length;
  int used = snprintf(walk->path + walk->path_length, room, "%s%s", walk->path_length == 0 ? "" : "/", name);
  if (used < 0 || (size_t)used >= room) return false;
  walk->path_length += (size_t)used;
  return true;
}

// Takes over `fd`.
static bool walk_folder(struct walk *walk, int fd, dev_t device, int depth) {
  DIR *entries = fdopendir(fd);
  if (entries == NULL) {
    close(fd);
    return send_trouble(walk, errno);
  }
  bool go_on = true;
  size_t length = walk->path_length;
  struct dirent *entry;
  while (go_on && (entry = readdir(entries)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    bool fits = append_name(walk, entry->d_name);
    if (fits) go_on = walk_entry(walk, dirfd(entries), entry->d_name, false, device, depth + 1);
    walk->path_length = length;
    walk->path[length] = 0;
    if (!fits) go_on = send_trouble(walk, ENAMETOOLONG);
  }
  closedir(entries);
  return go_on;
}

static bool walk_open(struct walk *walk, int fd, dev_t device, int depth) {
  struct stat facts;
  if (fstat(fd, &facts) < 0) {
    int error = errno;
    close(fd);
    return send_trouble(walk, error);
  }
  bool go_on;
  if (S_ISDIR(facts.st_mode)) {
    go_on = send_facts(walk, &facts, NULL, 0);
    bool foreign = depth > 0 && facts.st_dev != device && is_kernel_made(fd);
    if (go_on && depth >= DEPTH_MAX) go_on = send_trouble(walk, ELOOP);
    else if (go_on && !foreign) return walk_folder(walk, fd, facts.st_dev, depth);
  } else {
    go_on = S_ISREG(facts.st_mode) ? send_file(walk, fd, &facts) : send_facts(walk, &facts, NULL, 0);
  }
  close(fd);
  return go_on;
}

static bool walk_entry(struct walk *walk, int folder, const char *name, bool follow, dev_t device, int depth) {
  struct stat facts;
  if (fstatat(folder, name, &facts, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0) {
    // Removed since its folder was read: skipped as if it had never existed.
    return errno == ENOENT && depth > 0 ? true : send_trouble(walk, errno);
  }
  if (S_ISLNK(facts.st_mode)) return send_link(walk, folder, name, &facts);
  if (!S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode)) return send_facts(walk, &facts, NULL, 0);
  // Non-blocking, in case it has become a pipe meanwhile.
  int fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
  return fd < 0 ? send_trouble(walk, errno) : walk_open(walk, fd, device, depth);
}

void file_get(const struct fields *request, int output, struct writer *result) {
  static struct walk walk;
  walk.output = output;
  const char *path = file_path(request);
  bool follow = fields_number(request, TAG_FOLLOW, 0) != 0;
  struct stat facts;
  if (fstatat(AT_FDCWD, path, &facts, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0) {
    write_error(result, errno, path);
    return;
  }
  walk_entry(&walk, AT_FDCWD, path, follow, facts.st_dev, 0);
}
