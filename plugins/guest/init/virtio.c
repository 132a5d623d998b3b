// Keeps disks without their driver until the workload comes: a driver reads a disk's size only once.
#include "virtio.h"
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

static int has_no_driver(const struct dirent *device) {
  char path[sizeof BUS + 280];
  snprintf(path, sizeof path, BUS "/devices/%s/driver", device->d_name);
  return device->d_name[0] != '.' && access(path, F_OK) < 0;
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
  // The kernel refuses a device that no driver wants.
  for (int i = 0; i < held_count; i++) file_write(AT_FDCWD, BUS "/drivers_probe", held[i]->d_name);
  switch_probing("1");
}

bool virtio_release(struct failure *failure) {
  char path[sizeof BUS + 280];
  switch_probing("0");
  for (int i = 0; i < held_count; i++) {
    snprintf(path, sizeof path, BUS "/devices/%s/driver/unbind", held[i]->d_name);
    int error = file_write(AT_FDCWD, path, held[i]->d_name);
    if (error != 0 && error != ENOENT) return fail(failure, error, NO_EXIT, "the disks cannot be let go: %s", strerror(error));
  }
  return true;
}
