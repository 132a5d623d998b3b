// The kind `get`: sends a file, or a folder with all that is in it, as a sequence of entries.
#ifndef FILE_GET_H
#define FILE_GET_H

#include "fields.h"

void file_get(const struct fields *request, int output, struct writer *result);

#endif
