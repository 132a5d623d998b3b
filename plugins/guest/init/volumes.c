// Volumes: mounted at a path of the program's choice, at the start or while it runs, and unmounted again.
#include "volumes.h"
#include "disks.h"
#include "files.h"
#include "protocol.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FOLDER_SIZE = DISK_NAME_SIZE + 32, RELEASE_TRIES = 50, RELEASE_PAUSE_MS = 10 };

static struct kept_volume volumes[WORKLOAD_MOUNTS_MAX];

// Where a volume is mounted before it is moved: below the first root, which is invisible in the guest.
static void stage_folder(const struct volume *volume, const char *part, char folder[FOLDER_SIZE]) {
  snprintf(folder, FOLDER_SIZE, "volumes/%s/%s", disk_label(volume->device), part);
}

static void clear_stage(const struct volume *volume) {
  static const char *const parts[] = { "merged", "overlay", "disk" };
  char folder[FOLDER_SIZE];
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    stage_folder(volume, parts[i], folder);
    umount2(folder, MNT_DETACH);
  }
}

static bool mount_parts(const struct volume *volume, struct failure *failure) {
  char disk[FOLDER_SIZE], upper[FOLDER_SIZE], merged[FOLDER_SIZE];
  stage_folder(volume, "disk", disk);
  bool readonly = volume->readonly || volume->overlay_device != NULL;
  // noload: a journal must not be replayed onto a read-only disk. The host has made sure that there is nothing to replay.
  if (!disk_mount(volume->device, disk, "ext4", readonly ? MS_RDONLY : 0, readonly ? "noload" : DISK_WRITABLE, failure)) return false;
  if (volume->overlay_device == NULL) return true;
  stage_folder(volume, "overlay", upper);
  stage_folder(volume, "merged", merged);
  if (!disk_mount(volume->overlay_device, upper, "ext4", 0, DISK_WRITABLE, failure)) return false;
  if (!disk_join(disk, NULL, upper, merged, failure)) return false;
  // The overlay holds both mounts; they end with it.
  umount2(upper, MNT_DETACH);
  umount2(disk, MNT_DETACH);
  return true;
}

int volume_stage(const struct volume *volume, struct failure *failure) {
  char root[FOLDER_SIZE];
  stage_folder(volume, volume->overlay_device == NULL ? "disk" : "merged", root);
  int fd = -1;
  if (mount_parts(volume, failure)) {
    fd = (int)syscall(SYS_open_tree, AT_FDCWD, root, O_CLOEXEC);
    if (fd < 0) fail(failure, errno, EXIT_BOOT_FAILED, "the volume for %s cannot be taken: %s", volume->path, strerror(errno));
  }
  if (fd < 0) clear_stage(volume);
  return fd;
}

bool volume_place(const struct volume *volume, int fd, struct failure *failure) {
  int error = folder_make(volume->path, 0755);
  if (error == 0 && syscall(SYS_move_mount, fd, "", AT_FDCWD, volume->path, MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS) < 0) error = errno;
  close(fd);
  if (error == 0) return true;
  return fail(failure, error, EXIT_BOOT_FAILED, "the volume cannot be mounted at %s: %s", volume->path, strerror(error));
}

static dev_t mounted_at(const char *path) {
  struct stat facts;
  return stat(path, &facts) == 0 ? facts.st_dev : 0;
}

bool volume_mount(const struct volume *volume, dev_t *place, struct failure *failure) {
  if (fchdir(disks_initrd) < 0) return fail(failure, errno, NO_EXIT, "the first root cannot be entered: %s", strerror(errno));
  int fd = volume_stage(volume, failure);
  if (fd < 0) return false;
  struct stat facts;
  bool placed = fstat(fd, &facts) == 0 && volume_place(volume, fd, failure);
  if (placed) *place = facts.st_dev;
  else clear_stage(volume);
  return placed;
}

// The kernel writes out and releases what was mounted on its way out of the system call, but a process that is just ending may hold it for a moment longer. No event reports that.
static bool is_released(const char *device, char name[DISK_NAME_SIZE]) {
  const struct timespec pause = { .tv_nsec = RELEASE_PAUSE_MS * 1000000 };
  if (!disk_find(device, name)) {
    name[0] = 0;
    return true;
  }
  for (int tries = 0; disk_is_used(name); tries++) {
    if (tries == RELEASE_TRIES) return false;
    nanosleep(&pause, NULL);
  }
  return true;
}

bool volume_unmount(const struct volume *volume, dev_t *place, struct failure *failure) {
  char disk[DISK_NAME_SIZE], overlay[DISK_NAME_SIZE] = "";
  if (fchdir(disks_initrd) < 0) return fail(failure, errno, NO_EXIT, "the first root cannot be entered: %s", strerror(errno));
  bool was_there = *place != 0 && mounted_at(volume->path) == *place;
  if (was_there && umount2(volume->path, 0) < 0) {
    if (errno == EBUSY) return fail(failure, EBUSY, NO_EXIT, "%s is in use in the guest", volume->path);
    return fail(failure, errno, NO_EXIT, "%s cannot be unmounted: %s", volume->path, strerror(errno));
  }
  if (!is_released(volume->device, disk) || (volume->overlay_device != NULL && !is_released(volume->overlay_device, overlay))) {
    struct failure again;
    if (was_there && !volume_mount(volume, place, &again)) {
      return fail(failure, EBUSY, NO_EXIT, "the volume is mounted somewhere else in the guest too, and could not be put back: %s", again.message);
    }
    return fail(failure, EBUSY, NO_EXIT, "the volume of %s is mounted somewhere else in the guest too, or its disk is open", volume->path);
  }
  int error = disk[0] == 0 ? 0 : disk_remove(disk);
  int other = overlay[0] == 0 ? 0 : disk_remove(overlay);
  if (error == 0) error = other;
  return error == 0 || fail(failure, error, NO_EXIT, "the disk of %s cannot be let go: %s", volume->path, strerror(error));
}

struct kept_volume *volumes_find(const char *device) {
  for (size_t i = 0; i < WORKLOAD_MOUNTS_MAX; i++) {
    if (volumes[i].volume.device != NULL && strcmp(volumes[i].volume.device, device) == 0) return &volumes[i];
  }
  return NULL;
}

struct kept_volume *volumes_reserve(const struct volume *volume) {
  for (size_t i = 0; i < WORKLOAD_MOUNTS_MAX; i++) {
    struct kept_volume *kept = &volumes[i];
    if (kept->volume.device != NULL) continue;
    const char *overlay = volume->overlay_device;
    *kept = (struct kept_volume){ .fd = -1 };
    kept->volume = (struct volume){
      .path = strdup(volume->path), .device = strdup(volume->device), .readonly = volume->readonly,
      .overlay_device = overlay == NULL ? NULL : strdup(overlay),
    };
    if (kept->volume.path != NULL && kept->volume.device != NULL && (overlay == NULL || kept->volume.overlay_device != NULL)) return kept;
    volumes_forget(kept);
    return NULL;
  }
  return NULL;
}

void volumes_settle(struct kept_volume *kept, dev_t place) {
  const struct volume *volume = &kept->volume;
  kept->place = place;
  if (volume->readonly && volume->overlay_device == NULL) return;
  struct stat facts;
  int fd = open(volume->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // The guest may have mounted something else there by now.
  if (fd >= 0 && fstat(fd, &facts) == 0 && facts.st_dev == place) kept->fd = fd;
  else if (fd >= 0) close(fd);
}

bool volumes_keep(const struct volume *volume, struct failure *failure) {
  struct kept_volume *kept = volumes_reserve(volume);
  if (kept == NULL) return fail(failure, ENOMEM, EXIT_BOOT_FAILED, "out of memory");
  volumes_settle(kept, mounted_at(volume->path));
  return true;
}

void volumes_let_go(struct kept_volume *kept) {
  if (kept->fd >= 0) close(kept->fd);
  kept->fd = -1;
}

void volumes_forget(struct kept_volume *kept) {
  volumes_let_go(kept);
  free((char *)kept->volume.path);
  free((char *)kept->volume.device);
  free((char *)kept->volume.overlay_device);
  *kept = (struct kept_volume){ .fd = -1 };
}

int volumes_sync(void) {
  int error = 0;
  for (size_t i = 0; i < WORKLOAD_MOUNTS_MAX; i++) {
    if (volumes[i].volume.device != NULL && volumes[i].fd >= 0 && syncfs(volumes[i].fd) < 0) error = errno;
  }
  return error;
}

void volumes_freeze(void) {
  for (size_t i = 0; i < WORKLOAD_MOUNTS_MAX; i++) {
    if (volumes[i].volume.device == NULL || volumes[i].fd < 0) continue;
    // An overlay cannot be frozen itself.
    if (ioctl(volumes[i].fd, FIFREEZE, 0) < 0) syncfs(volumes[i].fd);
  }
}
