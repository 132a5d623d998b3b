// Keeps disks without their driver until the workload comes, or the host asks for it: a driver reads a disk's size only once, and again when the device says that it has changed.
#ifndef VIRTIO_H
#define VIRTIO_H

#include "failure.h"
#include <stdbool.h>

// From now on new drivers take no devices.
void virtio_hold(void);
// Binds the devices without a driver to theirs. Does nothing the second time.
void virtio_bind(void);
// For a process that has forked another, which has bound them: unbinds these devices, so that they can be bound again. What this process has bound itself stays bound,
// and must not be in use. False when a driver does not release its device.
bool virtio_release(struct failure *failure);

#endif
