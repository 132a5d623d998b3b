// Keeps disks without their driver until the workload comes: a driver reads a disk's size only once.
#ifndef VIRTIO_H
#define VIRTIO_H

#include "failure.h"
#include <stdbool.h>

// From now on new drivers take no devices.
void virtio_hold(void);
// Binds the devices without a driver to theirs.
void virtio_bind(void);
// Unbinds these devices, so that they can be bound again. False when a driver does not release its device.
bool virtio_release(struct failure *failure);

#endif
