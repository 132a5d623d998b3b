// The environment of a command, and the search for its file along PATH.
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct environment {
  char **items; // NULL-terminated `K=V`
  size_t count;
  size_t capacity;
};

bool environment_init(struct environment *environment, size_t capacity);
void environment_free(struct environment *environment);
// The string must outlive the environment. An entry without a name before its `=` is dropped; a later entry replaces an earlier one.
void environment_set(struct environment *environment, char *item);
const char *environment_get(const struct environment *environment, const char *name);
// Adds `name=value` when the name is absent.
void environment_default(struct environment *environment, const char *name, const char *value);

// Writes the next candidate for `file` along `path` and moves `path` on; false at its end. An empty element is the current folder.
bool path_next(const char **path, const char *file, char *candidate, size_t size);

#endif
