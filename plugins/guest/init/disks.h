// Disks: found by the host's name for them, given their driver when one is wanted, mounted, and released again.
#ifndef DISKS_H
#define DISKS_H

#include "failure.h"
#include <stdbool.h>
#include <stddef.h>

// A device is named by its node (`/dev/vdb`) or by the serial number that the host gave it (`serial:volume-0`), which does not depend on other disks.
enum { DISK_NAME_SIZE = 64 };

// Only fsck cares whether inode tables were ever zeroed; zeroing them would cost each new disk 1.6 % of its size in writes.
#define DISK_WRITABLE "noinit_itable"

// The first root of the machine, with its own /dev and /sys: usable whatever root is entered later, and whatever the guest mounts there.
extern int disks_initrd;
void disks_open(void);

// Whether it has the form of a device name.
bool disk_is_named(const char *device);
// The part after `/dev/` or `serial:`.
const char *disk_label(const char *device);
// The kernel's name of it (`sdb`); false when there is none now.
bool disk_find(const char *device, char name[DISK_NAME_SIZE]);
// Mounts it, after waiting for it if necessary. The folder is made. Paths are relative to the working folder, which is the first root.
bool disk_mount(const char *device, const char *folder, const char *type, unsigned long flags, const char *options, struct failure *failure);
// Mounts `lower` and the disk mounted at `disk` as one tree at `target`, all relative to the working folder; `lowest` is below `lower`, and may be NULL.
bool disk_join(const char *lower, const char *lowest, const char *disk, const char *target, struct failure *failure);
// Whether anything in the machine has it mounted or opened.
bool disk_is_used(const char *name);
// Makes the kernel forget it, so that the host can detach it; 0 or errno.
int disk_remove(const char *name);

#endif
