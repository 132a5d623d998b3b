// What a root needs before a program can run in it: kernel file systems, device names and switches.
#ifndef SYSTEM_FILES_H
#define SYSTEM_FILES_H

// In the new root. What fails is logged: most programs run without it.
void system_files_make(void);

#endif
