#include "changes.h"
#include "mapping.h"
#include "whole-io.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, PIECE = 256, VERSION = 1 };
static const char magic[8] = "berthchg";

struct header {
  char magic[8];
  uint32_t version, page;
  uint64_t bytes, count;
};

// The numbers of the pages, ascending.
struct pages {
  uint64_t count;
  uint64_t *numbers;
};

// From /proc/PID/pagemap: of a private mapping of a file, pages that are somewhere and no longer the file's.
static const uint64_t PRESENT = 1ULL << 63, SWAPPED = 1ULL << 62, OF_FILE = 1ULL << 61;

static bool is_changed(uint64_t entry) { return (entry & (PRESENT | SWAPPED)) != 0 && (entry & OF_FILE) == 0; }

static off_t content_at(uint64_t count) {
  off_t end = (off_t)(sizeof(struct header) + count * sizeof(uint64_t));
  return (end + PAGE - 1) / PAGE * PAGE;
}

// How many pages from `at` on follow each other, a piece at most.
static uint64_t run_of(const struct pages *pages, uint64_t at) {
  uint64_t length = 1;
  while (length < PIECE && at + length < pages->count && pages->numbers[at + length] == pages->numbers[at] + length) length++;
  return length;
}

static bool note(struct pages *pages, uint64_t number) {
  // Room for a power of two.
  if ((pages->count & (pages->count - 1)) == 0) {
    uint64_t *more = realloc(pages->numbers, (pages->count == 0 ? 1 : pages->count * 2) * sizeof *more);
    if (more == NULL) return false;
    pages->numbers = more;
  }
  pages->numbers[pages->count++] = number;
  return true;
}

static bool find(const char *pid, uintptr_t start, off_t bytes, struct pages *pages) {
  static uint64_t entries[8192];
  int fd = open_of(pid, "pagemap", O_RDONLY);
  if (fd < 0) return false;
  uint64_t all = (uint64_t)bytes / PAGE;
  bool done = true;
  for (uint64_t at = 0; done && at < all;) {
    uint64_t some = all - at < 8192 ? all - at : 8192;
    done = read_all(fd, (char *)entries, some * sizeof *entries, (off_t)((start / PAGE + at) * sizeof *entries));
    for (uint64_t i = 0; done && i < some; i++) if (is_changed(entries[i])) done = note(pages, at + i);
    at += some;
  }
  close(fd);
  return done;
}

// Moves each run of pages between a place at their own offset, from `start` on, and the dense file.
static bool move(const struct pages *pages, int from, int to, uintptr_t start, bool is_packing) {
  static char piece[PIECE * PAGE];
  off_t packed = content_at(pages->count);
  for (uint64_t at = 0; at < pages->count;) {
    uint64_t length = run_of(pages, at);
    off_t own = (off_t)(start + pages->numbers[at] * PAGE);
    if (!read_all(from, piece, length * PAGE, is_packing ? own : packed)) return false;
    if (!write_all(to, piece, length * PAGE, is_packing ? packed : own)) return false;
    packed += (off_t)(length * PAGE);
    at += length;
  }
  return true;
}

static bool write_file(int fd, int memory, uintptr_t start, off_t bytes, const struct pages *pages) {
  struct header header = { .version = VERSION, .page = PAGE, .bytes = (uint64_t)bytes, .count = pages->count };
  memcpy(header.magic, magic, sizeof magic);
  return ftruncate(fd, content_at(pages->count) + (off_t)(pages->count * PAGE)) == 0 && write_all(fd, (char *)&header, sizeof header, 0) &&
    write_all(fd, (char *)pages->numbers, pages->count * sizeof *pages->numbers, sizeof header) && move(pages, memory, fd, start, true);
}

bool changes_write(const char *pid, const char *base, off_t bytes, const char *target) {
  uintptr_t start;
  struct pages pages = { 0 };
  if (!mapping_of(pid, base, bytes, &start) || !find(pid, start, bytes, &pages)) return false;
  int memory = open_of(pid, "mem", O_RDONLY);
  if (memory < 0) return false;
  int fd = open(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  bool done = write_file(fd, memory, start, bytes, &pages);
  int error = errno;
  if (close(fd) < 0 && done) {
    done = false;
    error = errno;
  }
  if (!done) unlink(target);
  errno = error;
  return done;
}

// Opens a file of changes and reads its numbers. One that was cut or spoilt is EINVAL.
static int open_changes(const char *path, off_t bytes, struct pages *pages) {
  struct header header;
  struct stat found;
  int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &found) < 0) return -1;
  errno = EINVAL;
  if (found.st_size < (off_t)sizeof header || !read_all(fd, (char *)&header, sizeof header, 0)) return -1;
  uint64_t all = (uint64_t)bytes / PAGE;
  if (memcmp(header.magic, magic, sizeof magic) != 0 || header.version != VERSION || header.page != PAGE || header.bytes != (uint64_t)bytes || header.count > all) return -1;
  if (found.st_size != content_at(header.count) + (off_t)(header.count * PAGE)) return -1;
  pages->count = header.count;
  pages->numbers = malloc((header.count + 1) * sizeof *pages->numbers);
  if (pages->numbers == NULL || !read_all(fd, (char *)pages->numbers, header.count * sizeof *pages->numbers, sizeof header)) return -1;
  errno = EINVAL;
  for (uint64_t i = 0; i < header.count; i++) if (pages->numbers[i] >= all || (i > 0 && pages->numbers[i] <= pages->numbers[i - 1])) return -1;
  return fd;
}

bool changes_fill(const char *pid, const char *base, off_t bytes, const char *changes) {
  uintptr_t start;
  struct pages pages = { 0 };
  int from = open_changes(changes, bytes, &pages);
  if (from < 0 || !mapping_of(pid, base, bytes, &start)) return false;
  int memory = open_of(pid, "mem", O_RDWR);
  return memory >= 0 && move(&pages, from, memory, start, false);
}

bool changes_merge(const char *changes, off_t bytes, const char *target) {
  struct pages pages = { 0 };
  struct stat found;
  int from = open_changes(changes, bytes, &pages);
  if (from < 0) return false;
  int to = open(target, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  if (to < 0 || fstat(to, &found) < 0) return false;
  if (!S_ISREG(found.st_mode) || found.st_size != bytes) {
    errno = EINVAL;
    return false;
  }
  return move(&pages, from, to, 0, false);
}
