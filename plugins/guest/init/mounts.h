// The file systems of the guest: the kernel's own, the image with its overlay, and volumes.
#ifndef MOUNTS_H
#define MOUNTS_H

#include "failure.h"
#include "workload.h"

// /proc, /sys and /dev of the initrd.
void mounts_early(void);
// Where the disks will be mounted.
void mounts_make_folders(void);
// Mount the image, and the instance's own disk; two processes may do one each at the same time.
bool mounts_take_image(struct failure *failure);
bool mounts_take_disk(struct failure *failure);
// Mounts the overlay of both, the kernel's headers and volumes, and makes them the root of this process.
bool mounts_enter_root(const struct workload *workload, struct failure *failure);
// Whether the instance's own disk has a version of its own of this path of the image.
bool mounts_overlay_has(const char *path);
// Opens a folder of the root (`etc`), also while an untrusted program runs: neither a link nor a mount of the program
// redirects it, so no file system of the program is used. A descriptor, or -1 with errno.
int mounts_open_folder(const char *name);
// Descriptors that stay open: the merged root without what is mounted in it, and the instance's own disk.
int mounts_root(void);
int mounts_disk(void);
// Whether the image itself has a non-empty file of this name, a path below the root; a link counts.
bool mounts_image_has(const char *name);
// Writes all data to the disks. May take long; 0 or errno.
int mounts_sync(void);
// Writes all data to the disks, so that they are clean when the power goes: after a freeze no journal needs a repair.
void mounts_freeze(void);

#endif
