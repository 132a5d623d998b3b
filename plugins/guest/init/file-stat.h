// The kind `stat`, and the facts about a path that `get` sends too.
#ifndef FILE_STAT_H
#define FILE_STAT_H

#include "fields.h"
#include <sys/stat.h>

void file_stat(const struct fields *request, struct writer *result);
// The path of a request, made absolute (workers stand in the root).
const char *file_path(const struct fields *request);
void write_error(struct writer *writer, int error, const char *path);
// type, mode, uid, gid, mtime, size
void write_facts(struct writer *writer, const struct stat *facts);

#endif
