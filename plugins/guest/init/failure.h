// Why something failed: a text for people, the errno, and the exit code for it.
#ifndef FAILURE_H
#define FAILURE_H

#include <stdint.h>

struct failure {
  int32_t error;
  int32_t exit_code;
  char message[504];
};

// Fills it in and returns false, so that a function can end with `return fail(...)`.
_Bool fail(struct failure *failure, int error, int exit_code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
