// What a root needs before a program can run in it: kernel file systems, device names, and the host's words in /etc.
#include "system-files.h"
#include "files.h"
#include "log.h"
#include "mounts.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MAX = 2048 };

#define MARK "# berth writes this file at each start; without this line it is yours\n"

static void mount_kernel(const char *type, const char *folder, unsigned long flags, const char *options) {
  int error = folder_make(folder, 0755);
  if (error == 0 && mount(type, folder, type, flags, options) < 0) error = errno;
  if (error != 0) log_problem("%s: %s", folder, strerror(error));
}

static void mount_kernel_file_systems(struct cgroups *cgroups) {
  const unsigned long plain = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  mount_kernel("proc", "/proc", plain, NULL);
  mount_kernel("sysfs", "/sys", plain, NULL);
  mount_kernel("devtmpfs", "/dev", MS_NOSUID, NULL);
  mount_kernel("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "gid=5,mode=620,ptmxmode=666");
  mount_kernel("tmpfs", "/dev/shm", plain, "mode=1777");
  mount_kernel("mqueue", "/dev/mqueue", plain, NULL);
  cgroups_make(cgroups, "/sys/fs/cgroup");
}

static void link_devices(void) {
  // devtmpfs is one for the whole machine, so they may be there already.
  if (symlink("/proc/self/fd", "/dev/fd") < 0 && errno != EEXIST) log_problem("/dev/fd: %s", strerror(errno));
  if (symlink("/proc/self/fd/0", "/dev/stdin") < 0 && errno != EEXIST) log_problem("/dev/stdin: %s", strerror(errno));
  if (symlink("/proc/self/fd/1", "/dev/stdout") < 0 && errno != EEXIST) log_problem("/dev/stdout: %s", strerror(errno));
  if (symlink("/proc/self/fd/2", "/dev/stderr") < 0 && errno != EEXIST) log_problem("/dev/stderr: %s", strerror(errno));
}

bool hosts_format(const struct workload *workload, char *text, size_t size) {
  const struct network *network = &workload->identity.network;
  const char *address = network->address == NULL ? "127.0.1.1" : network->address;
  int used = snprintf(text, size,
                      MARK "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
                           "ff02::1\tip6-allnodes\nff02::2\tip6-allrouters\n%.*s\t%s\n",
                      (int)strcspn(address, "/"), address, workload->hostname == NULL ? "localhost" : workload->hostname);
  return used >= 0 && (size_t)used < size;
}

bool resolv_format(const struct network *network, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, MARK);
  for (size_t i = 0; i < network->dns_count && used < size; i++) {
    used += (size_t)snprintf(text + used, size - used, "nameserver %s\n", network->dns[i]);
  }
  return used < size;
}

// The image's own version gives way, as with docker. A version that was edited inside this instance stays: it lies on the
// instance's own disk and does not begin with our mark.
static void write_ours(const char *path, const char *text) {
  char *now = file_read(path, TEXT_MAX, NULL);
  bool edited = now != NULL && now[0] != 0 && strncmp(now, MARK, strlen(MARK)) != 0 && mounts_overlay_has(path);
  bool same = now != NULL && strcmp(now, text) == 0;
  free(now);
  if (edited || same) return;
  folder_make("/etc", 0755);
  int error = file_replace(path, text);
  if (error != 0) log_problem("%s: %s", path, strerror(error));
}

static void write_names(const struct workload *workload) {
  char text[TEXT_MAX];
  if (workload->hostname != NULL && snprintf(text, sizeof text, "%s\n", workload->hostname) < (int)sizeof text) {
    folder_make("/etc", 0755);
    int error = file_replace("/etc/hostname", text);
    if (error != 0) log_problem("/etc/hostname: %s", strerror(error));
  }
  if (hosts_format(workload, text, sizeof text)) write_ours("/etc/hosts", text);
  if (workload->identity.network.dns_count > 0 && resolv_format(&workload->identity.network, text, sizeof text)) {
    write_ours("/etc/resolv.conf", text);
  }
}

void system_files_make(const struct workload *workload, struct cgroups *cgroups) {
  mount_kernel_file_systems(cgroups);
  link_devices();
  write_names(workload);
  // As in a docker container: any user may listen on port 80, and ping.
  file_write(AT_FDCWD, "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
  file_write(AT_FDCWD, "/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
}
