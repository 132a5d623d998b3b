// The files of all instances: told of each write by inotify, and cut when they are too large.
#pragma once
#include <stdbool.h>

// Begins to watch, and looks at all files once. False with errno set.
bool files_open(int root, const char *path, long long log_bytes, long long report_bytes);

// Readable when something has happened.
int files_descriptor(void);

// Handles what has happened. Returns the milliseconds for which no further look is needed.
long files_look(void);
