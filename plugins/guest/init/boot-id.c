// The id of this boot. The kernel makes its own at the first read and keeps it, so a memory image carries it into every clone.
#include "boot-id.h"
#include "log.h"
#include "protocol.h"
#include "spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KERNEL_ID "sys/kernel/random/boot_id"

static char own[BOOT_ID_SIZE]; // what to show in the place of the kernel's, or the kernel's, which never changes
static int cover = -1;         // a file of the first root, to lie over the kernel's
static int covered = -1;       // the kernel's in the program's /proc
static bool laid;

static bool make(char id[BOOT_ID_SIZE]) {
  uint8_t b[16];
  // Before `run` the generator may not have been seeded; that id only needs to distinguish machines.
  if (getrandom(b, sizeof b, GRND_INSECURE) != sizeof b) return false;
  b[6] = (uint8_t)((b[6] & 0x0F) | 0x40);
  b[8] = (uint8_t)((b[8] & 0x3F) | 0x80);
  snprintf(id, BOOT_ID_SIZE, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3],
           b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
  return true;
}

void boot_id_begin(void) {
  if (!make(own)) own[0] = 0;
  cover = open("/boot-id", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
  if (cover < 0) log_problem("/boot-id: %s", strerror(errno));
}

void boot_id_settle(void) {
  own[0] = 0;
}

void boot_id_place(void) {
  struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
  // Repeated for an init, which has another /proc.
  if (covered >= 0) close(covered);
  covered = (int)syscall(SYS_openat2, AT_FDCWD, "/proc/" KERNEL_ID, &how, sizeof how);
}

static bool lay_cover(void) {
  int tree = (int)syscall(SYS_open_tree, cover, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
  if (tree < 0) return false;
  // By descriptors, so that no mount of the program can interfere.
  laid = syscall(SYS_move_mount, tree, "", covered, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0;
  int error = errno;
  close(tree);
  errno = error;
  return laid;
}

bool boot_id_renew(struct failure *failure) {
  char line[BOOT_ID_SIZE + 1];
  if (cover < 0 || covered < 0) return true;
  if (!make(own)) return fail(failure, errno, EXIT_BOOT_FAILED, "no new boot id: %s", strerror(errno));
  snprintf(line, sizeof line, "%s\n", own);
  if (pwrite(cover, line, strlen(line), 0) == (ssize_t)strlen(line) && (laid || lay_cover())) return true;
  return fail(failure, errno, EXIT_BOOT_FAILED, "no new boot id: %s", strerror(errno));
}

void boot_id_read(char id[BOOT_ID_SIZE]) {
  memcpy(id, own, BOOT_ID_SIZE);
  if (own[0] != 0) return;
  int fd = proc_folder < 0 ? -1 : openat(proc_folder, KERNEL_ID, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? 0 : read(fd, id, BOOT_ID_SIZE - 1);
  if (fd >= 0) close(fd);
  id[length > 0 ? length : 0] = 0;
}

void boot_id_remember(void) {
  if (own[0] != 0) return;
  char id[BOOT_ID_SIZE];
  boot_id_read(id);
  memcpy(own, id, BOOT_ID_SIZE);
}
