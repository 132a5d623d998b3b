// The file systems of the guest: the kernel's own, the image with its overlay, and volumes.
#include "mounts.h"
#include "files.h"
#include "protocol.h"
#include "uevents.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Whether a table of inodes was ever zeroed matters only to fsck; doing it would cost each new disk 1.6 % of its size in writes.
#define WRITABLE "noinit_itable"

enum { DEVICE_WAIT_MS = 5000, WRITABLE_MAX = WORKLOAD_MOUNTS_MAX + 1 };

// Roots of the writable disks, the instance's own first, held open for the last freeze: the guest cannot take them away.
static int writable[WRITABLE_MAX];
static size_t writable_count;
static int image = -1, merged = -1;

void mounts_early(void) {
  mkdir("/proc", 0755);
  mkdir("/sys", 0755);
  mkdir("/dev", 0755);
  mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
  mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
  mount("dev", "/dev", "devtmpfs", MS_NOSUID, "mode=755");
}

void mounts_make_folders(void) {
  mkdir("/image", 0755);
  mkdir("/overlay", 0755);
  mkdir("/merged", 0755);
}

static bool device_exists(void *device) {
  return access(device, F_OK) == 0;
}

static bool mount_device(int uevents, const char *device, const char *folder, const char *type, unsigned long flags,
                         const char *options, struct failure *failure) {
  folder_make(folder, 0755);
  if (!uevents_wait(uevents, "/block/", device_exists, (void *)device, DEVICE_WAIT_MS)) {
    return fail(failure, ENODEV, EXIT_BOOT_FAILED, "the disk %s is missing", device);
  }
  if (mount(device, folder, type, flags, options) == 0) return true;
  return fail(failure, errno, EXIT_BOOT_FAILED, "the disk %s cannot be mounted: %s", device, strerror(errno));
}

static void hold_writable(const char *folder) {
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0 && writable_count < WRITABLE_MAX) writable[writable_count++] = fd;
}

// Joins `lower` and the disk mounted at `disk` at `target`.
static bool mount_overlay(const char *lower, const char *disk, const char *target, struct failure *failure) {
  char upper[128], work[128], options[512];
  snprintf(upper, sizeof upper, "%s/upper", disk);
  snprintf(work, sizeof work, "%s/work", disk);
  struct stat facts;
  bool fresh = mkdir(upper, 0755) == 0;
  // The upper folder stands for the root folder itself, so it begins with that one's owner and mode.
  if (fresh && stat(lower, &facts) == 0 && (chown(upper, facts.st_uid, facts.st_gid) < 0 || chmod(upper, facts.st_mode & 07777) < 0)) {
    return fail(failure, errno, EXIT_BOOT_FAILED, "the overlay cannot be prepared: %s", strerror(errno));
  }
  mkdir(work, 0755);
  folder_make(target, 0755);
  snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s", lower, upper, work);
  if (mount("overlay", target, "overlay", 0, options) == 0) return true;
  return fail(failure, errno, EXIT_BOOT_FAILED, "the overlay cannot be mounted: %s", strerror(errno));
}

// Mounts a volume outside of the new root and returns a descriptor of it: inside, the image's own links could lead anywhere.
static int stage_volume(const struct volume *volume, size_t number, int uevents, struct failure *failure) {
  char disk[64], upper[64], joined[64];
  snprintf(disk, sizeof disk, "/volumes/%zu/disk", number);
  snprintf(upper, sizeof upper, "/volumes/%zu/overlay", number);
  snprintf(joined, sizeof joined, "/volumes/%zu/merged", number);
  bool readonly = volume->readonly || volume->overlay_device != NULL;
  // noload: a journal must not be replayed onto a disk that is not to be written.
  if (!mount_device(uevents, volume->device, disk, "ext4", readonly ? MS_RDONLY : 0, readonly ? "noload" : WRITABLE, failure)) return -1;
  const char *root = disk;
  if (!readonly) hold_writable(disk);
  if (volume->overlay_device != NULL) {
    if (!mount_device(uevents, volume->overlay_device, upper, "ext4", 0, WRITABLE, failure)) return -1;
    hold_writable(upper);
    if (!mount_overlay(disk, upper, joined, failure)) return -1;
    root = joined;
  }
  int fd = (int)syscall(SYS_open_tree, AT_FDCWD, root, O_CLOEXEC);
  if (fd < 0) fail(failure, errno, EXIT_BOOT_FAILED, "the volume for %s cannot be taken: %s", volume->path, strerror(errno));
  return fd;
}

static bool place_volume(const struct volume *volume, int fd, struct failure *failure) {
  int error = folder_make(volume->path, 0755);
  if (error == 0 && syscall(SYS_move_mount, fd, "", AT_FDCWD, volume->path, MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS) < 0) error = errno;
  close(fd);
  if (error == 0) return true;
  return fail(failure, error, EXIT_BOOT_FAILED, "the volume cannot be mounted at %s: %s", volume->path, strerror(error));
}

static bool mount_root(int uevents, struct failure *failure) {
  if (!mount_device(uevents, "/dev/vda", "/image", "erofs", MS_RDONLY, NULL, failure)) return false;
  if (!mount_device(uevents, "/dev/vdb", "/overlay", "ext4", 0, WRITABLE, failure)) return false;
  hold_writable("/overlay");
  return mount_overlay("/image", "/overlay", "/merged", failure);
}

static bool switch_root(struct failure *failure) {
  image = open("/image", O_PATH | O_DIRECTORY | O_CLOEXEC);
  merged = open("/merged", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (chdir("/merged") == 0 && mount(".", "/", NULL, MS_MOVE, NULL) == 0 && chroot(".") == 0 && chdir("/") == 0) return true;
  return fail(failure, errno, EXIT_BOOT_FAILED, "the root cannot be entered: %s", strerror(errno));
}

bool mounts_enter_root(const struct workload *workload, int uevents, struct failure *failure) {
  int volumes[WORKLOAD_MOUNTS_MAX];
  if (!mount_root(uevents, failure)) return false;
  for (size_t i = 0; i < workload->volume_count; i++) {
    volumes[i] = stage_volume(&workload->volumes[i], i, uevents, failure);
    if (volumes[i] < 0) return false;
  }
  if (!switch_root(failure)) return false;
  for (size_t i = 0; i < workload->volume_count; i++) {
    if (!place_volume(&workload->volumes[i], volumes[i], failure)) return false;
  }
  return true;
}

int mounts_open_folder(const char *name) {
  struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH };
  return (int)syscall(SYS_openat2, merged, name, &how, sizeof how);
}

int mounts_root(void) {
  return merged;
}

int mounts_disk(void) {
  return writable_count == 0 ? -1 : writable[0];
}

bool mounts_image_has(const char *name) {
  struct stat facts;
  return fstatat(image, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && (S_ISLNK(facts.st_mode) || facts.st_size > 0);
}

int mounts_sync(void) {
  int error = 0;
  for (size_t i = 0; i < writable_count; i++) {
    if (syncfs(writable[i]) < 0) error = errno;
  }
  return error;
}

bool mounts_overlay_has(const char *path) {
  char relative[PATH_MAX];
  if (writable_count == 0 || snprintf(relative, sizeof relative, "upper%s", path) >= (int)sizeof relative) return false;
  return faccessat(writable[0], relative, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void mounts_freeze(void) {
  for (size_t i = 0; i < writable_count; i++) {
    if (ioctl(writable[i], FIFREEZE, 0) < 0) syncfs(writable[i]);
  }
}
