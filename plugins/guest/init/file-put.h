// The kind `put`: makes a folder, or writes a file beside its target and renames it when it is complete.
#ifndef FILE_PUT_H
#define FILE_PUT_H

#include "fields.h"

// Reads the content from `input` until its end. SIGTERM removes the half-written file and ends the process.
void file_put(const struct fields *request, int input, struct writer *result);

#endif
