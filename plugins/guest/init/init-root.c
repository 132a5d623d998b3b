// The root as an image's own init expects it: https://systemd.io/CONTAINER_INTERFACE, which suffices for other inits.
//
// An init is process 1 of a process namespace, and this program stays the first process of the machine, outside of it. The alternative,
// an init as the machine's first process with the agent beside it, was rejected: everything that this program promises at the
// end (all output, the report, disks that are frozen before the power goes) depends on being the last process; an init kills unknown
// processes when it ends, and cannot be asked to spare us; and the guest's root could end the agent by a `kill`. So `kill -1`,
// `reboot` and a crash of the init affect only the namespace, and its end is like that of a program, with all processes in it dead.
//
// There is one mount namespace: what the init mounts (/run, /tmp) is what `cp` and commands see, and a later volume is
// mounted where the init's services look. So mounts of the root are shared, as systemd does on a machine of its own: services with a
// mount namespace of their own see the volume, and release it.
#include "init-root.h"
#include "log.h"
#include "protocol.h"
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>

static const unsigned long plain = MS_NOSUID | MS_NODEV | MS_NOEXEC;

static bool put_over(const char *type, const char *folder) {
  umount2(folder, MNT_DETACH);
  return mount(type, folder, type, plain, NULL) == 0;
}

bool init_root_make(struct failure *failure) {
  if (!put_over("proc", "/proc")) {
    return fail(failure, errno, EXIT_BOOT_FAILED, "/proc of the init's process namespace cannot be mounted: %s", strerror(errno));
  }
  // The init's group becomes the root of its hierarchy, which it may divide.
  if (unshare(CLONE_NEWCGROUP) < 0 || !put_over("cgroup2", "/sys/fs/cgroup")) log_problem("the init's control groups: %s", strerror(errno));
  // Read-only /sys tells udev that somebody else manages the devices: udev would rename the network device.
  if (mount(NULL, "/sys", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | plain, NULL) < 0) log_problem("/sys: %s", strerror(errno));
  if (mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) < 0) log_problem("/ cannot be shared: %s", strerror(errno));
  return true;
}
