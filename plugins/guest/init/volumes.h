// Volumes: mounted at a path of the program's choice, at the start or while it runs, and taken away again.
#ifndef VOLUMES_H
#define VOLUMES_H

#include "failure.h"
#include "workload.h"
#include <stdbool.h>
#include <sys/types.h>

// Mounts a volume outside of the root that is (to be) entered and returns a descriptor of it: inside, links of the image could lead anywhere.
int volume_stage(const struct volume *volume, int uevents, struct failure *failure);
// Moves it to where it belongs, in the root as it is now. Closes the descriptor.
bool volume_place(const struct volume *volume, int fd, struct failure *failure);

// Both at once, for a fork of this program while the guest runs; `place` says afterwards what is mounted there.
bool volume_mount(const struct volume *volume, dev_t *place, struct failure *failure);
// Also for a fork: unmounts it if it is still there, and lets its disks go. EBUSY when anything in the guest uses it; then it is as before, and
// `place` says again what is mounted.
bool volume_unmount(const struct volume *volume, dev_t *place, struct failure *failure);

// The volumes that this machine has. A writable one is held open, so that it can be written out and frozen whatever the guest does.
struct kept_volume {
  struct volume volume; // strings of its own
  dev_t place;          // 0: it is not mounted yet
  int fd;               // -1: not held
};

// Takes note of one that has been mounted.
bool volumes_keep(const struct volume *volume, struct failure *failure);
// Takes note of one that is about to be; NULL without memory, or for too many.
struct kept_volume *volumes_reserve(const struct volume *volume);
// It is there: holds it.
void volumes_settle(struct kept_volume *kept, dev_t place);
// Does not hold it any more: a held one cannot be unmounted.
void volumes_let_go(struct kept_volume *kept);
void volumes_forget(struct kept_volume *kept);
// By its device; NULL when there is none.
struct kept_volume *volumes_find(const char *device);
// 0 or errno
int volumes_sync(void);
void volumes_freeze(void);

#endif
