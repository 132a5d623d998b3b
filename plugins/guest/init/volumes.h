// Volumes: mounted at a path of the program's choice, at the start or while it runs, and unmounted again.
#ifndef VOLUMES_H
#define VOLUMES_H

#include "failure.h"
#include "workload.h"
#include <stdbool.h>
#include <sys/types.h>

// Mounts a volume outside of the root that is (to be) entered and returns a descriptor of it: inside, links of the image could lead anywhere.
int volume_stage(const struct volume *volume, struct failure *failure);
// Moves it to its path in the current root. Closes the descriptor.
bool volume_place(const struct volume *volume, int fd, struct failure *failure);

// Stages and places it, for a fork of this program while the guest runs; `place` is set to what is then mounted there.
bool volume_mount(const struct volume *volume, dev_t *place, struct failure *failure);
// Also for a fork: unmounts it if it is still mounted, and releases its disks. EBUSY when anything in the guest uses it; then nothing has changed, and
// `place` is set to what is mounted.
bool volume_unmount(const struct volume *volume, dev_t *place, struct failure *failure);

// The volumes of this machine. A writable one is kept open, so that it can be written out and frozen whatever the guest does.
struct kept_volume {
  struct volume volume; // strings of its own
  dev_t place;          // 0: it is not mounted yet
  int fd;               // -1: not held
};

// Adds a volume that has been mounted.
bool volumes_keep(const struct volume *volume, struct failure *failure);
// Adds a volume that is about to be mounted; NULL without memory, or when there are too many.
struct kept_volume *volumes_reserve(const struct volume *volume);
// The volume is mounted: keeps it open.
void volumes_settle(struct kept_volume *kept, dev_t place);
// Closes it: a volume that is kept open cannot be unmounted.
void volumes_let_go(struct kept_volume *kept);
void volumes_forget(struct kept_volume *kept);
// Finds a volume by its device; NULL when there is none.
struct kept_volume *volumes_find(const char *device);
// 0 or errno
int volumes_sync(void);
void volumes_freeze(void);

#endif
