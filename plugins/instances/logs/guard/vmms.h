// Whether any VMM that writes to the files runs.
#pragma once
#include <stdbool.h>

// VMMs are known by their working folder, as in the server.
bool vmms_work_below(const char *folder);
