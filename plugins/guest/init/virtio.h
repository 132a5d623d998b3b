// Keeps disks without their driver until the workload comes: a driver reads a disk's size only once.
#ifndef VIRTIO_H
#define VIRTIO_H

#include "failure.h"
#include <stdbool.h>

// From now on drivers that are loaded take no devices.
void virtio_hold(void);
// Gives the devices that had no driver by then to theirs.
void virtio_bind(void);
// Takes those devices back, so that they can be bound again. False when a driver does not let go.
bool virtio_release(struct failure *failure);

#endif
