// Keeps disks without their driver until the workload comes, or the host asks for it: a driver reads a disk's size only once, and again when the device says that it has changed.
#include "virtio.h"
#include "disks.h"
#include "files.h"
#include "log.h"
#include "protocol.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUS "/sys/bus/virtio"

// Listed beforehand, since a clone of a template pays for every step of its start.
static struct dirent **held;
static int held_count;
static bool bound;

static int has_no_driver(const struct dirent *device) {
  char path[sizeof BUS + 280];
  snprintf(path, sizeof path, BUS "/devices/%s/driver", device->d_name);
  return device->d_name[0] != '.' && access(path, F_OK) < 0;
}

static int is_disk(const struct dirent *block) {
  return strncmp(block->d_name, "vd", 2) == 0;
}

static void switch_probing(const char *value) {
  int error = file_write(AT_FDCWD, BUS "/drivers_autoprobe", value);
  if (error != 0) log_problem("drivers_autoprobe: %s", strerror(error));
}

void virtio_hold(void) {
  // In the order in which the bus found them, since the first disk to be bound becomes /dev/vda.
  held_count = scandir(BUS "/devices", &held, has_no_driver, versionsort);
  if (held_count < 0) log_problem("virtio: %s", strerror(errno));
  switch_probing("0");
}

void virtio_bind(void) {
  if (bound) return;
  bound = true;
  // The kernel refuses a device that no driver wants.
  for (int i = 0; i < held_count; i++) file_write(AT_FDCWD, BUS "/drivers_probe", held[i]->d_name);
  switch_probing("1");
}

// What was mounted on them is gone, and with the last user the kernel has dropped what it knew of their content.
static bool none_is_used(struct failure *failure) {
  struct dirent **disks;
  bool good = true;
  int count = scandir("/sys/block", &disks, is_disk, NULL);
  for (int i = 0; i < count; i++) {
    if (good && disk_is_used(disks[i]->d_name)) good = fail(failure, EBUSY, NO_EXIT, "the disk %s is still in use", disks[i]->d_name);
    free(disks[i]);
  }
  if (count >= 0) free(disks);
  return good;
}

bool virtio_release(struct failure *failure) {
  char path[sizeof BUS + 280];
  if (bound) return none_is_used(failure);
  switch_probing("0");
  for (int i = 0; i < held_count; i++) {
    snprintf(path, sizeof path, BUS "/devices/%s/driver/unbind", held[i]->d_name);
    int error = file_write(AT_FDCWD, path, held[i]->d_name);
    if (error != 0 && error != ENOENT) return fail(failure, error, NO_EXIT, "the disks cannot be let go: %s", strerror(error));
  }
  return true;
}
