// Whether anybody writes to the files at all.
#pragma once
#include <stdbool.h>

// VMMs are known by their working folder, as for the server.
bool vmms_work_below(const char *folder);
