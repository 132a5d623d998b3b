// Loads the kernel modules that a list file of the initrd names.
#ifndef MODULES_H
#define MODULES_H

// One module a line: its path below /lib/modules/, uncompressed, parameters after a space. Loaded ones are deleted, to free their memory.
// `initrd`: a descriptor of its root, which stays good when another root is entered.
void modules_load(int initrd, const char *list);

#endif
