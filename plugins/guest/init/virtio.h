// Keeps disks without their driver until the workload comes: a driver reads a disk's size only once.
#ifndef VIRTIO_H
#define VIRTIO_H

// From now on drivers that are loaded take no devices.
void virtio_hold(void);
// Gives the devices that had no driver by then to theirs.
void virtio_bind(void);

#endif
