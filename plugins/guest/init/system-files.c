// What a root needs before a program can run in it: kernel file systems, device names and switches.
#include "system-files.h"
#include "files.h"
#include "log.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static void mount_kernel(const char *type, const char *folder, unsigned long flags, const char *options) {
  int error = folder_make(folder, 0755);
  if (error == 0 && mount(type, folder, type, flags, options) < 0) error = errno;
  if (error != 0) log_problem("%s: %s", folder, strerror(error));
}

static void link_devices(void) {
  if (symlink("/proc/self/fd", "/dev/fd") < 0 && errno != EEXIST) log_problem("/dev/fd: %s", strerror(errno));
  if (symlink("/proc/self/fd/0", "/dev/stdin") < 0 && errno != EEXIST) log_problem("/dev/stdin: %s", strerror(errno));
  if (symlink("/proc/self/fd/1", "/dev/stdout") < 0 && errno != EEXIST) log_problem("/dev/stdout: %s", strerror(errno));
  if (symlink("/proc/self/fd/2", "/dev/stderr") < 0 && errno != EEXIST) log_problem("/dev/stderr: %s", strerror(errno));
}

static void make_device_folders(void) {
  mkdir("/dev/pts", 0755);
  mkdir("/dev/shm", 0755);
  mkdir("/dev/mqueue", 0755);
}

void system_files_prepare(void) {
  link_devices();
  make_device_folders();
  // As in a docker container: any user may listen on port 80, and ping.
  file_write(AT_FDCWD, "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
  file_write(AT_FDCWD, "/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
}

void system_files_make(void) {
  const unsigned long plain = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  mount_kernel("proc", "/proc", plain, NULL);
  mount_kernel("sysfs", "/sys", plain, NULL);
  mount_kernel("devtmpfs", "/dev", MS_NOSUID, NULL);
  mount_kernel("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "gid=5,mode=620,ptmxmode=666");
  mount_kernel("tmpfs", "/dev/shm", plain, "mode=1777");
  mount_kernel("mqueue", "/dev/mqueue", plain, NULL);
  // The groups exist already; this is another mount of the same hierarchy.
  mount_kernel("cgroup2", "/sys/fs/cgroup", plain, NULL);
}
