// The smallest TAP writer that the C tests need.
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stdio.h>

static int checks_made, checks_failed;

static inline bool check(bool held, const char *what) {
  checks_made++;
  if (!held) checks_failed++;
  printf("%s %d - %s\n", held ? "ok" : "not ok", checks_made, what);
  fflush(stdout);
  return held;
}

static inline int checks_end(void) {
  printf("1..%d\n", checks_made);
  return checks_failed == 0 ? 0 : 1;
}

#endif
