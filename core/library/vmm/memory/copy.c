#include "copy.h"
#include "whole-io.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
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
static const off_t OFFSET_MAX = (off_t)(((uint64_t)1 << 63) - 1);

// The piece as the source has it, and as the target has it.
struct buffers {
  char *here, *there;
};

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

// What one thread has found out about a file. The kernel walks over every page up to the next hole, and over every hole up to the next page, however far away that is: asked
// anew for each piece, a copy would take time by the square of its size.
struct layout {
  int fd;
  off_t content_from, content_until, hole_from, hole_until;
};

static off_t least(off_t one, off_t other) { return one < other ? one : other; }

// The offset of the next content, or `end`.
static off_t content(struct layout *file, off_t at, off_t end) {
  if (at >= file->content_from && at < file->content_until) return at;
  if (at < file->hole_from || at >= file->hole_until) {
    off_t found = lseek(file->fd, at, SEEK_DATA);
    if (found < 0 && errno != ENXIO) return -1;
    file->hole_from = at;
    file->hole_until = found < 0 ? OFFSET_MAX : found;
  }
  return least(file->hole_until, end);
}

// The end of the content at `at`, or `end`.
static off_t hole(struct layout *file, off_t at, off_t end) {
  if (at < file->content_from || at >= file->content_until) {
    off_t found = lseek(file->fd, at, SEEK_HOLE);
    if (found < 0) return -1;
    file->content_from = at;
    file->content_until = found;
  }
  return least(file->content_until, end);
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
static bool copy_content(struct layout *source, struct layout *target, struct buffers buffers, off_t at, off_t size) {
  if (!read_all(source->fd, buffers.here, (size_t)size, at)) return false;
  off_t found = content(target, at, at + size);
  if (found < 0) return false;
  bool is_empty = found == at + size;
  if (!is_empty && !read_all(target->fd, buffers.there, (size_t)size, at)) return false;
  return write_changed(target->fd, buffers.here, is_empty ? NULL : buffers.there, size, at);
}

static bool copy_piece(struct layout *source, struct layout *target, struct buffers buffers, off_t at, off_t end) {
  while (at < end) {
    off_t from = content(source, at, end);
    if (from < 0) return false;
    off_t old = from > at ? content(target, at, from) : from;
    if (old < 0 || (old < from && fallocate(target->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, old, from - old) < 0)) return false;
    if (from == end) return true;
    off_t to = hole(source, from, end);
    if (to < 0) return false;
    // The guest gave the page back meanwhile.
    if (to == from) to = least(from + PAGE, end);
    if (!copy_content(source, target, buffers, from, to - from)) return false;
    at = to;
  }
  return true;
}

static void *work(void *context) {
  struct copying *copying = context;
  struct layout source = { .fd = copying->source }, target = { .fd = copying->target };
  char *room = mmap(NULL, (size_t)PIECE * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) {
    atomic_store(&copying->error, errno);
    return NULL;
  }
  while (atomic_load(&copying->error) == 0) {
    off_t at = atomic_fetch_add(&copying->next, PIECE);
    if (at >= copying->bytes) break;
    off_t end = least(at + PIECE, copying->bytes);
    if (!copy_piece(&source, &target, (struct buffers){ room, room + PIECE }, at, end)) atomic_store(&copying->error, errno);
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
