// What a root needs before a program can run in it: kernel file systems, device names, and the host's words in /etc.
#ifndef SYSTEM_FILES_H
#define SYSTEM_FILES_H

#include "cgroup.h"
#include "workload.h"

// In the new root. What fails is logged: most programs run without it.
void system_files_make(const struct workload *workload, struct cgroups *cgroups);
// The text of /etc/hosts and /etc/resolv.conf; false when it does not fit.
bool hosts_format(const struct workload *workload, char *text, size_t size);
bool resolv_format(const struct network *network, char *text, size_t size);

#endif
