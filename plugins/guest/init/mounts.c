// The file systems of the guest: the kernel's own, the image with its overlay, and volumes.
#include "mounts.h"
#include "disks.h"
#include "init-system.h"
#include "log.h"
#include "protocol.h"
#include "volumes.h"
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

// The root of the instance's own disk, kept open for the last freeze, whatever the guest unmounts.
static int own_disk = -1;
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
  mkdir("/headers", 0755);
}

bool mounts_take_image(struct failure *failure) {
  return disk_mount("/dev/vda", "/image", "erofs", MS_RDONLY, NULL, failure);
}

bool mounts_take_disk(struct failure *failure) {
  if (!disk_mount("/dev/vdb", "/overlay", "ext4", 0, DISK_WRITABLE, failure)) return false;
  own_disk = open("/overlay", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return true;
}

static bool mount_root(const char *headers, struct failure *failure) {
  if (headers != NULL && !disk_mount(headers, "/headers", "erofs", MS_RDONLY, NULL, failure)) return false;
  return disk_join("/image", headers == NULL ? NULL : "/headers", "/overlay", "/merged", failure);
}

static bool switch_root(struct failure *failure) {
  image = open("/image", O_PATH | O_DIRECTORY | O_CLOEXEC);
  merged = open("/merged", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (chdir("/merged") == 0 && mount(".", "/", NULL, MS_MOVE, NULL) == 0 && chroot(".") == 0 && chdir("/") == 0) return true;
  return fail(failure, errno, EXIT_BOOT_FAILED, "the root cannot be entered: %s", strerror(errno));
}

bool mounts_enter_root(const struct workload *workload, struct failure *failure) {
  int volumes[WORKLOAD_MOUNTS_MAX];
  if (!mount_root(workload->kernel_headers, failure)) return false;
  for (size_t i = 0; i < workload->volume_count; i++) {
    volumes[i] = volume_stage(&workload->volumes[i], failure);
    if (volumes[i] < 0) return false;
  }
  if (!switch_root(failure)) return false;
  // Before the volumes, since systemd would otherwise mount it over volumes below /run.
  if (init_system_of(workload) == INIT_SYSTEMD && mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV | MS_STRICTATIME, "mode=755,size=20%,nr_inodes=800k") < 0) {
    log_problem("/run: %s", strerror(errno));
  }
  for (size_t i = 0; i < workload->volume_count; i++) {
    if (!volume_place(&workload->volumes[i], volumes[i], failure) || !volumes_keep(&workload->volumes[i], failure)) return false;
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
  return own_disk;
}

bool mounts_image_has(const char *name) {
  struct stat facts;
  return fstatat(image, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && (S_ISLNK(facts.st_mode) || facts.st_size > 0);
}

int mounts_sync(void) {
  int error = own_disk >= 0 && syncfs(own_disk) < 0 ? errno : 0, others = volumes_sync();
  return error != 0 ? error : others;
}

bool mounts_overlay_has(const char *path) {
  char relative[PATH_MAX];
  if (own_disk < 0 || snprintf(relative, sizeof relative, "upper%s", path) >= (int)sizeof relative) return false;
  return faccessat(own_disk, relative, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void mounts_freeze(void) {
  volumes_freeze();
  if (own_disk >= 0 && ioctl(own_disk, FIFREEZE, 0) < 0) syncfs(own_disk);
}
