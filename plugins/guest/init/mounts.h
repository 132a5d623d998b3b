// The file systems of the guest: the kernel's own, the image with its overlay, and volumes.
#ifndef MOUNTS_H
#define MOUNTS_H

#include "failure.h"
#include "workload.h"

// /proc, /sys and /dev of the initrd.
void mounts_early(void);
// Mounts image, overlay and volumes, and makes them the root of this process.
bool mounts_enter_root(const struct workload *workload, int uevents, struct failure *failure);
// Whether the instance's own disk has its version of this path of the image.
bool mounts_overlay_has(const char *path);
// Everything on the disks, so that they are clean when the power goes: freezing leaves nothing for a journal to repair.
void mounts_freeze(void);

#endif
