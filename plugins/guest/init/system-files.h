// What a root needs before a program can run in it: kernel file systems, device names and switches.
#ifndef SYSTEM_FILES_H
#define SYSTEM_FILES_H

// Prepares what all roots of this machine share, and needs no root: /dev is the same, wherever it is mounted.
void system_files_prepare(void);
// In the new root. Failures are logged: most programs run without these files.
void system_files_make(void);

#endif
