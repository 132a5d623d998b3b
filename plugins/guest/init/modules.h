// Loads the kernel modules that a list file of the initrd names.
#ifndef MODULES_H
#define MODULES_H

// One module a line: its path below /lib/modules/, uncompressed, parameters after a space. Loaded ones are deleted, to free their memory.
void modules_load(const char *list_path);

#endif
