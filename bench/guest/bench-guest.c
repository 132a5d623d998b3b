// What benchmarks run inside a VM. Static, so that it needs nothing of the image.
//   fill PATH BYTES   a file of bytes that no two pages have alike: in a memory file system, that much touched memory
//   check PATH BYTES  whether such a file is still what it was
//   ticks             prints "ready", looks at its clocks every millisecond, and reports each jump
//   count             prints "ready", then counts aloud, a line every 5 ms
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { TICK_NS = 1000000, COUNT_NS = 5000000, GAP_NS = 5000000 };

static int fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  return 1;
}

// A bijection of the index without zero and without patterns, so that nothing can share or skip its pages.
static uint64_t pattern(uint64_t index) {
  uint64_t value = (index + 1) * 0x9e3779b97f4a7c15u;
  return value ^ (value >> 29);
}

static uint64_t *map(const char *path, size_t bytes, int fill) {
  int fd = open(path, fill ? O_RDWR | O_CREAT | O_EXCL : O_RDONLY, 0600);
  if (fd < 0 || (fill && ftruncate(fd, (off_t)bytes) != 0)) return NULL;
  void *memory = mmap(NULL, bytes, fill ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? NULL : memory;
}

static int fill(const char *path, size_t bytes) {
  uint64_t *words = map(path, bytes, 1);
  if (words == NULL) return fail(path);
  for (size_t i = 0; i < bytes / 8; i++) words[i] = pattern(i);
  return 0;
}

static int check(const char *path, size_t bytes) {
  uint64_t *words = map(path, bytes, 0);
  if (words == NULL) return fail(path);
  for (size_t i = 0; i < bytes / 8; i++) {
    if (words[i] != pattern(i)) return fprintf(stderr, "%s: word %zu is not what it was\n", path, i), 1;
  }
  return 0;
}

static int64_t now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void pause_for(long ns) {
  struct timespec time = { 0, ns };
  nanosleep(&time, NULL);
}

// The guest's monotonic clock stands still while the VM is paused. Its wall clock is put right when it wakes, so its jump is the pause.
static _Noreturn void ticks(void) {
  puts("ready");
  int64_t real = now(CLOCK_REALTIME), monotonic = now(CLOCK_MONOTONIC);
  for (;;) {
    pause_for(TICK_NS);
    int64_t next_real = now(CLOCK_REALTIME), next_monotonic = now(CLOCK_MONOTONIC);
    if (next_real - real > GAP_NS || next_monotonic - monotonic > GAP_NS) {
      printf("gap %lld %lld\n", (long long)(next_real - real) / 1000, (long long)(next_monotonic - monotonic) / 1000);
    }
    real = next_real;
    monotonic = next_monotonic;
  }
}

static _Noreturn void count(void) {
  puts("ready");
  for (uint64_t number = 0;; number++) {
    pause_for(COUNT_NS);
    printf("count %llu\n", (unsigned long long)number);
  }
}

int main(int argc, char **argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc == 4 && strcmp(argv[1], "fill") == 0) return fill(argv[2], strtoull(argv[3], NULL, 10));
  if (argc == 4 && strcmp(argv[1], "check") == 0) return check(argv[2], strtoull(argv[3], NULL, 10));
  if (argc == 2 && strcmp(argv[1], "ticks") == 0) ticks();
  if (argc == 2 && strcmp(argv[1], "count") == 0) count();
  fprintf(stderr, "usage: %s fill PATH BYTES | check PATH BYTES | ticks | count\n", argv[0]);
  return 2;
}
