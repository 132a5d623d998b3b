// The file systems of the guest: the kernel's own, the image with its overlay, and volumes.
#ifndef MOUNTS_H
#define MOUNTS_H

#include "failure.h"
#include "workload.h"

// /proc, /sys and /dev of the initrd.
void mounts_early(void);
// Where the disks will be mounted.
void mounts_make_folders(void);
// Mounts image, overlay, the kernel's headers and volumes, and makes them the root of this process.
bool mounts_enter_root(const struct workload *workload, int uevents, struct failure *failure);
// Whether the instance's own disk has its version of this path of the image.
bool mounts_overlay_has(const char *path);
// A folder of the root (`etc`), also while a program runs that is not to be trusted: neither a link nor a mount of the program's
// leads elsewhere, so no file system of its making is asked. A descriptor, or -1 with errno.
int mounts_open_folder(const char *name);
// The merged root without anything that is mounted in it, and the instance's own disk: descriptors that stay open.
int mounts_root(void);
int mounts_disk(void);
// Whether the image itself brings a file of this name, as a path below the root, that is not empty; a link counts.
bool mounts_image_has(const char *name);
// Everything written so far, on the disks. May take long; 0 or errno.
int mounts_sync(void);
// Everything on the disks, so that they are clean when the power goes: freezing leaves nothing for a journal to repair.
void mounts_freeze(void);

#endif
