// Disks: found by the host's name for them, given their driver when one is wanted, mounted, and released again.
#include "disks.h"
#include "files.h"
#include "modules.h"
#include "protocol.h"
#include "uevents.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEVICE_WAIT_MS = 5000, SERIAL_MAX = 256, SERIAL_PAGE_HEADER = 4 };

#define NODE "/dev/"
#define SERIAL "serial:"

int disks_initrd = AT_FDCWD;

void disks_open(void) {
  int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) disks_initrd = fd;
}

bool disk_is_named(const char *device) {
  const char *label = disk_label(device);
  size_t length = strlen(label);
  return label != device && length > 0 && length < DISK_NAME_SIZE && strchr(label, '/') == NULL && label[0] != '.';
}

const char *disk_label(const char *device) {
  if (strncmp(device, NODE, sizeof NODE - 1) == 0) return device + sizeof NODE - 1;
  return strncmp(device, SERIAL, sizeof SERIAL - 1) == 0 ? device + sizeof SERIAL - 1 : device;
}

// A virtio disk has the serial number as text, a SCSI disk in page 0x80 of its data, behind a header.
static bool has_serial(const char *name, const char *serial) {
  char path[DISK_NAME_SIZE + 32];
  size_t length = 0, skip = 0;
  snprintf(path, sizeof path, "sys/block/%s/serial", name);
  char *text = file_read_at(disks_initrd, path, SERIAL_MAX, &length);
  if (text == NULL) {
    snprintf(path, sizeof path, "sys/block/%s/device/vpd_pg80", name);
    text = file_read_at(disks_initrd, path, SERIAL_MAX, &length);
    skip = SERIAL_PAGE_HEADER;
  }
  if (text == NULL) return false;
  while (length > skip && (text[length - 1] == '\n' || text[length - 1] == ' ' || text[length - 1] == 0)) length--;
  bool same = length >= skip && length - skip == strlen(serial) && memcmp(text + skip, serial, length - skip) == 0;
  free(text);
  return same;
}

static DIR *open_folder(const char *path) {
  int fd = openat(disks_initrd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *folder = fd < 0 ? NULL : fdopendir(fd);
  if (folder == NULL && fd >= 0) close(fd);
  return folder;
}

static bool has_node(const char *name) {
  char path[DISK_NAME_SIZE + 8];
  snprintf(path, sizeof path, "dev/%s", name);
  return faccessat(disks_initrd, path, F_OK, 0) == 0;
}

// The node of a new disk exists a moment before it can be opened.
static bool can_be_opened(const char *name) {
  char path[DISK_NAME_SIZE + 8];
  snprintf(path, sizeof path, "dev/%s", name);
  int fd = openat(disks_initrd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

bool disk_find(const char *device, char name[DISK_NAME_SIZE]) {
  const char *label = disk_label(device);
  if (device[0] == '/') {
    snprintf(name, DISK_NAME_SIZE, "%s", label);
    return has_node(name);
  }
  DIR *folder = open_folder("sys/block");
  bool found = false;
  for (struct dirent *entry; folder != NULL && !found && (entry = readdir(folder)) != NULL;) {
    if (entry->d_name[0] == '.' || strlen(entry->d_name) >= DISK_NAME_SIZE) continue;
    snprintf(name, DISK_NAME_SIZE, "%.*s", DISK_NAME_SIZE - 1, entry->d_name);
    found = has_serial(name, label) && can_be_opened(name);
  }
  if (folder != NULL) closedir(folder);
  return found;
}

// What has no driver is a disk that was let go of, and is wanted again.
static void bind_again(void) {
  char path[DISK_NAME_SIZE + 64];
  DIR *folder = open_folder("sys/bus/virtio/devices");
  for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
    if (entry->d_name[0] == '.' || strlen(entry->d_name) >= DISK_NAME_SIZE) continue;
    snprintf(path, sizeof path, "sys/bus/virtio/devices/%.*s/driver", DISK_NAME_SIZE - 1, entry->d_name);
    if (faccessat(disks_initrd, path, F_OK, 0) < 0) file_write(disks_initrd, "sys/bus/virtio/drivers_probe", entry->d_name);
  }
  if (folder != NULL) closedir(folder);
}

// Disks that can come and go are on a SCSI bus, whose drivers most machines never need, or are virtio devices, which come by themselves. The bus is scanned only here: all disks belong to one target.
static void look_for_more(void) {
  char path[DISK_NAME_SIZE + 64];
  bind_again();
  if (faccessat(disks_initrd, "sys/module/virtio_scsi", F_OK, 0) < 0) modules_load(disks_initrd, "modules.volumes");
  DIR *folder = open_folder("sys/class/scsi_host");
  for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
    if (entry->d_name[0] == '.' || strlen(entry->d_name) >= DISK_NAME_SIZE) continue;
    snprintf(path, sizeof path, "sys/class/scsi_host/%.*s/scan", DISK_NAME_SIZE - 1, entry->d_name);
    file_write(disks_initrd, path, "0 0 -");
  }
  if (folder != NULL) closedir(folder);
}

struct sought {
  const char *device;
  char *name;
};

static bool is_found(void *owner) {
  struct sought *sought = owner;
  return disk_find(sought->device, sought->name);
}

// The kernel's own path where the guest sees the same node, since `df` and other programs show it.
static void source_of(const char *name, char *path, size_t size) {
  struct stat here, there;
  snprintf(path, size, "/dev/%s", name);
  if (fstatat(disks_initrd, path + 1, &here, 0) == 0 && stat(path, &there) == 0 && here.st_rdev == there.st_rdev) return;
  snprintf(path, size, "dev/%s", name);
}

bool disk_mount(const char *device, const char *folder, const char *type, unsigned long flags, const char *options, struct failure *failure) {
  char name[DISK_NAME_SIZE], source[DISK_NAME_SIZE + 8];
  struct sought sought = { device, name };
  folder_make(folder, 0755);
  if (!disk_find(device, name)) {
    if (device[0] != '/') look_for_more();
    if (!uevents_wait("/block/", is_found, &sought, DEVICE_WAIT_MS)) {
      return fail(failure, ENODEV, EXIT_BOOT_FAILED, "the disk %s is missing", device);
    }
  }
  source_of(name, source, sizeof source);
  if (mount(source, folder, type, flags, options) == 0) return true;
  return fail(failure, errno, EXIT_BOOT_FAILED, "the disk %s cannot be mounted: %s", device, strerror(errno));
}

bool disk_join(const char *lower, const char *lowest, const char *disk, const char *target, struct failure *failure) {
  char upper[192], work[192], options[768];
  snprintf(upper, sizeof upper, "%s/upper", disk);
  snprintf(work, sizeof work, "%s/work", disk);
  struct stat facts;
  bool fresh = mkdir(upper, 0755) == 0;
  // The upper folder replaces the root folder, so it starts with the same owner and mode.
  if (fresh && stat(lower, &facts) == 0 && (chown(upper, facts.st_uid, facts.st_gid) < 0 || chmod(upper, facts.st_mode & 07777) < 0)) {
    return fail(failure, errno, EXIT_BOOT_FAILED, "the overlay cannot be prepared: %s", strerror(errno));
  }
  mkdir(work, 0755);
  folder_make(target, 0755);
  snprintf(options, sizeof options, "lowerdir=%s%s%s,upperdir=%s,workdir=%s", lower, lowest == NULL ? "" : ":", lowest == NULL ? "" : lowest, upper, work);
  if (mount("overlay", target, "overlay", 0, options) == 0) return true;
  return fail(failure, errno, EXIT_BOOT_FAILED, "the overlay cannot be mounted: %s", strerror(errno));
}

bool disk_is_used(const char *name) {
  char path[DISK_NAME_SIZE + 8];
  snprintf(path, sizeof path, "dev/%s", name);
  int fd = openat(disks_initrd, path, O_RDONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return errno == EBUSY;
  close(fd);
  return false;
}

// A disk on no bus that can forget it is a virtio device of its own: its driver lets go of it, and the host takes the device.
static int unbind(const char *name) {
  char path[DISK_NAME_SIZE + 48], target[256];
  snprintf(path, sizeof path, "sys/block/%s/device", name);
  ssize_t length = readlinkat(disks_initrd, path, target, sizeof target - 1);
  if (length < 0) return errno;
  target[length] = 0;
  const char *slash = strrchr(target, '/');
  snprintf(path, sizeof path, "sys/block/%s/device/driver/unbind", name);
  return file_write(disks_initrd, path, slash == NULL ? target : slash + 1);
}

int disk_remove(const char *name) {
  char path[DISK_NAME_SIZE + 32];
  snprintf(path, sizeof path, "sys/block/%s/device/delete", name);
  int error = file_write(disks_initrd, path, "1");
  return error == ENOENT ? unbind(name) : error;
}
