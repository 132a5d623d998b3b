// What a root needs before a program can run in it: kernel file systems, device names and switches.
#ifndef SYSTEM_FILES_H
#define SYSTEM_FILES_H

// What all roots of this machine share, and what needs none: /dev is one, whatever it is mounted on.
void system_files_prepare(void);
// In the new root. What fails is logged: most programs run without it.
void system_files_make(void);

#endif
