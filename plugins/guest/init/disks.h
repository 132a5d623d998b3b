// Disks: found by what the host calls them, given their driver when one is wanted, mounted, and let go again.
#ifndef DISKS_H
#define DISKS_H

#include "failure.h"
#include <stdbool.h>
#include <stddef.h>

// A device is named by its node (`/dev/vdb`) or by the serial number that the host gave it (`serial:volume-0`), which holds whatever else there is.
enum { DISK_NAME_SIZE = 64 };

// Whether a table of inodes was ever zeroed matters only to fsck; doing it would cost each new disk 1.6 % of its size in writes.
#define DISK_WRITABLE "noinit_itable"

// The first root of the machine, with its own /dev and /sys: good whatever root is entered later, and whatever the guest mounts there.
extern int disks_initrd;
void disks_open(void);

// Whether it is a name by its form.
bool disk_is_named(const char *device);
// What stands behind `/dev/` or `serial:`.
const char *disk_label(const char *device);
// The kernel's name of it (`sdb`); false when there is none now.
bool disk_find(const char *device, char name[DISK_NAME_SIZE]);
// Mounts it, waiting for it if need be. The folder is made. Both are looked for from the working folder, which is the first root.
bool disk_mount(int uevents, const char *device, const char *folder, const char *type, unsigned long flags, const char *options,
                struct failure *failure);
// Joins `lower` and the disk mounted at `disk` at `target`, all from the working folder; `lowest` shows where `lower` has nothing, and may be NULL.
bool disk_join(const char *lower, const char *lowest, const char *disk, const char *target, struct failure *failure);
// Whether anything in the machine has it mounted, or opened for itself.
bool disk_is_used(const char *name);
// The kernel forgets it, so that the host can take it away; 0 or errno.
int disk_remove(const char *name);

#endif
