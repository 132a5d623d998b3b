// The kind `stat`, and the facts about a path that `get` sends too.
#ifndef FILE_STAT_H
#define FILE_STAT_H

#include "fields.h"
#include <stdbool.h>
#include <sys/stat.h>

void file_stat(const struct fields *request, struct writer *result);
// The path of a request, made absolute (workers stand in the root).
const char *file_path(const struct fields *request);
void write_error(struct writer *writer, int error, const char *path);
// The largest size that a host can count to: the largest whole number of a double. Any user can give a sparse file more.
#define SIZE_TOLD_MAX ((1ULL << 53) - 1)
// Whether a file has as much as that, or more.
bool file_is_absurd(const struct stat *facts);
// type, mode, uid, gid, mtime, size
void write_facts(struct writer *writer, const struct stat *facts);

#endif
