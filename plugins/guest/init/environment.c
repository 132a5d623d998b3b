// The environment of a command, and the search for its file along PATH.
#include "environment.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool environment_init(struct environment *environment, size_t capacity) {
  *environment = (struct environment){ .items = calloc(capacity + 1, sizeof(char *)), .capacity = capacity };
  return environment->items != NULL;
}

void environment_free(struct environment *environment) {
  free(environment->items);
  *environment = (struct environment){ 0 };
}

static char **find(const struct environment *environment, const char *name, size_t length) {
  for (size_t i = 0; i < environment->count; i++) {
    char *item = environment->items[i];
    if (strncmp(item, name, length) == 0 && item[length] == '=') return &environment->items[i];
  }
  return NULL;
}

void environment_set(struct environment *environment, char *item) {
  const char *equals = strchr(item, '=');
  if (equals == NULL || equals == item) return;
  char **old = find(environment, item, (size_t)(equals - item));
  if (old != NULL) *old = item;
  else if (environment->count < environment->capacity) environment->items[environment->count++] = item;
}

const char *environment_get(const struct environment *environment, const char *name) {
  size_t length = strlen(name);
  char **item = find(environment, name, length);
  return item == NULL ? NULL : *item + length + 1;
}

// The string made here lives as long as the process, which is about to become the command.
void environment_default(struct environment *environment, const char *name, const char *value) {
  if (environment_get(environment, name) != NULL) return;
  size_t size = strlen(name) + strlen(value) + 2;
  char *item = malloc(size);
  if (item == NULL) return;
  snprintf(item, size, "%s=%s", name, value);
  environment_set(environment, item);
}

bool path_next(const char **path, const char *file, char *candidate, size_t size) {
  while (*path != NULL) {
    const char *element = *path;
    const char *end = strchr(element, ':');
    int length = (int)(end == NULL ? strlen(element) : (size_t)(end - element));
    *path = end == NULL ? NULL : end + 1;
    int used = length == 0 ? snprintf(candidate, size, "./%s", file)
                           : snprintf(candidate, size, "%.*s/%s", length, element, file);
    if (used >= 0 && (size_t)used < size) return true;
  }
  return false;
}
