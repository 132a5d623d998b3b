// Loads the kernel modules that a list file of the initrd names.
#ifndef MODULES_H
#define MODULES_H

// One module a line: its path below /lib/modules/, uncompressed, then a space and parameters. Loaded files are deleted, to free their memory.
// `initrd`: a descriptor of its root, which stays valid when another root is entered.
void modules_load(int initrd, const char *list);

#endif
