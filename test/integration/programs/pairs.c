// Keeps the same blocks in memory and on a disk, beyond any cache of the guest's, and looks at each pair before it is overwritten. A copy of the machine whose memory and disk
// are not of one moment finds a pair that differs.
// usage: pairs PATH
// Prints "at N" after each 64th block, and "differs N" for a pair that does.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK = 65536, SLOTS = 128 };

static int fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  return 1;
}

static void fill(uint64_t *block, uint64_t number) {
  for (size_t i = 0; i < BLOCK / 8; i++) block[i] = (number + 1) * 0x9e3779b97f4a7c15u ^ i;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  int fd = open(argv[1], O_RDWR | O_CREAT | O_DIRECT, 0600);
  if (fd < 0) return fail(argv[1]);
  char *memory = mmap(NULL, BLOCK * (SLOTS + 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail("memory");
  char *seen = memory + BLOCK * SLOTS;
  for (uint64_t number = 0;; number++) {
    char *block = memory + number % SLOTS * BLOCK;
    off_t at = (off_t)(number % SLOTS * BLOCK);
    if (number >= SLOTS) {
      if (pread(fd, seen, BLOCK, at) != BLOCK) return fail("read");
      if (memcmp(seen, block, BLOCK) != 0) printf("differs %llu\n", (unsigned long long)number);
    }
    fill((uint64_t *)block, number);
    if (pwrite(fd, block, BLOCK, at) != BLOCK) return fail("write");
    if (number % 64 == 63) printf("at %llu\n", (unsigned long long)number);
  }
}
