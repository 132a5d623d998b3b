#include "copy.h"
#include "whole-io.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, THREADS_MAX = 4 };
static const off_t PIECE = 1 << 20;

struct copying {
  int source, target;
  off_t bytes;
  _Atomic off_t next;
  atomic_int error;
};

static const char zeros[PAGE];

int copy_source(const char *path) {
  return open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

int copy_target(const char *path, off_t bytes) {
  struct stat found;
  int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  if (fstat(fd, &found) == 0 && (found.st_size == bytes || (found.st_size == 0 && ftruncate(fd, bytes) == 0))) return fd;
  if (found.st_size != 0) errno = EINVAL;
  return -1;
}

static off_t least(off_t one, off_t other) { return one < other ? one : other; }

// The offset of the next content, or `end`.
static off_t content(int fd, off_t at, off_t end) {
  off_t found = lseek(fd, at, SEEK_DATA);
  if (found >= 0) return least(found, end);
  return errno == ENXIO ? end : -1;
}

static off_t hole(int fd, off_t at, off_t end) {
  off_t found = lseek(fd, at, SEEK_HOLE);
  return found >= 0 ? least(found, end) : -1;
}

// Writes the pages that differ. `there` is NULL where the target has nothing.
static bool write_changed(int target, const char *here, const char *there, off_t size, off_t at) {
  for (off_t start = 0, next = 0; start < size; start = next) {
    off_t end = start;
    while (end < size) {
      size_t page = (size_t)least(PAGE, size - end);
      if (memcmp(here + end, there == NULL ? zeros : there + end, page) == 0) break;
      end += (off_t)page;
    }
    if (end > start && !write_all(target, here + start, (size_t)(end - start), at + start)) return false;
    next = end > start ? end : end + PAGE;
  }
  return true;
}

// Copies a range in which the source has content throughout. A VMM's memory is read and not mapped: a VMM that truncates it must not end this process.
static bool copy_content(struct copying *copying, char *here, char *there, off_t at, off_t size) {
  if (!read_all(copying->source, here, (size_t)size, at)) return false;
  off_t found = content(copying->target, at, at + size);
  if (found < 0) return false;
  bool is_empty = found == at + size;
  if (!is_empty && !read_all(copying->target, there, (size_t)size, at)) return false;
  return write_changed(copying->target, here, is_empty ? NULL : there, size, at);
}

static bool copy_piece(struct copying *copying, char *here, char *there, off_t at, off_t end) {
  while (at < end) {
    off_t from = content(copying->source, at, end);
    if (from < 0) return false;
    off_t old = from > at ? content(copying->target, at, from) : from;
    if (old < 0 || (old < from && fallocate(copying->target, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, old, from - old) < 0)) return false;
    if (from == end) return true;
    off_t to = hole(copying->source, from, end);
    if (to < 0) return false;
    // The guest gave the page back meanwhile.
    if (to == from) to = least(from + PAGE, end);
    if (!copy_content(copying, here, there, from, to - from)) return false;
    at = to;
  }
  return true;
}

static void *work(void *context) {
  struct copying *copying = context;
  char *buffers = mmap(NULL, (size_t)PIECE * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (buffers == MAP_FAILED) {
    atomic_store(&copying->error, errno);
    return NULL;
  }
  while (atomic_load(&copying->error) == 0) {
    off_t at = atomic_fetch_add(&copying->next, PIECE);
    if (at >= copying->bytes) break;
    if (!copy_piece(copying, buffers, buffers + PIECE, at, least(at + PIECE, copying->bytes))) atomic_store(&copying->error, errno);
  }
  return NULL;
}

bool copy_all(int source, int target, off_t bytes) {
  struct copying copying = { .source = source, .target = target, .bytes = bytes };
  struct stat found;
  pthread_t threads[THREADS_MAX];
  if (fstat(source, &found) < 0) return false;
  if (!S_ISREG(found.st_mode) || found.st_size != bytes) {
    errno = EINVAL;
    return false;
  }
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  int started = 0;
  // The copy also works with fewer threads.
  while (started < THREADS_MAX - 1 && started < processors - 1 && pthread_create(&threads[started], NULL, work, &copying) == 0) started++;
  work(&copying);
  for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
  errno = atomic_load(&copying.error);
  return errno == 0;
}
