// What fuzz.c makes its inputs of.
#ifndef FUZZ_INPUTS_H
#define FUZZ_INPUTS_H

#include <stddef.h>
#include <stdint.h>

enum { INPUT_MAX = 70000 };

struct seed {
  uint8_t bytes[512]; // which parser it is for, and what that gets
  size_t length;
};

// Makes the seeds, and the numbers of this seed the next ones.
void make_seeds(uint64_t seed);
// A number less than this; 0 of 0.
size_t random_below(size_t limit);
const struct seed *random_seed(void);
// One change to the bytes, for which there is INPUT_MAX; returns the new length.
size_t mutate(uint8_t *bytes, size_t length);

#endif
