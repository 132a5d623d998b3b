// The id of this boot. The kernel makes its own when it is first asked and keeps it, so a memory image carries it into every clone.
#ifndef BOOT_ID_H
#define BOOT_ID_H

#include "failure.h"
#include <stdbool.h>

enum { BOOT_ID_SIZE = 37 };

// While nothing may read the kernel's id: makes an id that only the host sees. In the first root, while it can be reached.
void boot_id_begin(void);
// From now on the kernel's id is used.
void boot_id_settle(void);
// Once the program's /proc is mounted: remembers where its id is.
void boot_id_place(void);
// Replaces the kernel's id, for a clone that becomes a machine of its own.
bool boot_id_renew(struct failure *failure);
// Empty when there is none.
void boot_id_read(char id[BOOT_ID_SIZE]);
// Reads it ahead, while nobody waits: the first HELLO of a restored guest comes sooner then.
void boot_id_remember(void);

#endif
