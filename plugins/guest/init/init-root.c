// The root as an image's own init expects it: https://systemd.io/CONTAINER_INTERFACE, which other inits are content with.
//
// An init is process 1 of a process namespace, and this program stays the first process of the machine, outside of it. The other way,
// to let the init be the machine's first process with the agent beside it, was not taken: everything that this program promises at the
// end (all output, the report, disks that are frozen before the power goes) hangs on being the last process; an init kills whatever it
// does not know when it ends, and may not be asked to spare us; and the guest's root could end the agent by a `kill`. So `kill -1`,
// `reboot` and a crash of the init reach nothing but the namespace, and its end is that of a program, with all in it dead.
//
// There is one mount namespace: what the init mounts (/run, /tmp) is what `cp` and commands see, and a volume that comes later is
// mounted where the init's services look. So the root is shared, as systemd has it on a machine of its own: services with mounts of
// their own get to see the volume, and let go of it.
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
  // The group that it is in becomes the root of its hierarchy, which it may divide.
  if (unshare(CLONE_NEWCGROUP) < 0 || !put_over("cgroup2", "/sys/fs/cgroup")) log_problem("the init's control groups: %s", strerror(errno));
  // The sign for udev that the devices are somebody else's: it would give the network device another name.
  if (mount(NULL, "/sys", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | plain, NULL) < 0) log_problem("/sys: %s", strerror(errno));
  if (mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) < 0) log_problem("/ cannot be shared: %s", strerror(errno));
  return true;
}
