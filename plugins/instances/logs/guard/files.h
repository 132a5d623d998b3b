// The files of all instances: told of each write by inotify, and cut when they are too large.
#pragma once
#include <stdbool.h>

// Begins to watch, and looks at all files once. False with errno set.
bool files_open(int root, const char *path, long long log_bytes, long long report_bytes);

// Readable when something has happened.
int files_descriptor(void);

// Looks at what has happened. Returns for how many milliseconds nobody need look again.
long files_look(void);
