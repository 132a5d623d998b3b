// Why something failed: a text for people, the errno, and the exit code for it.
#include "failure.h"
#include <stdarg.h>
#include <stdio.h>

_Bool fail(struct failure *failure, int error, int exit_code, const char *format, ...) {
  failure->error = error;
  failure->exit_code = exit_code;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(failure->message, sizeof failure->message, format, arguments);
  va_end(arguments);
  return 0;
}
