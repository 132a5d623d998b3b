// berth-init: the first process of a Berth guest, and its agent.
#include "agent.h"
#include "aside.h"
#include "boot-id.h"
#include "boot-word.h"
#include "disks.h"
#include "identity.h"
#include "init-root.h"
#include "log.h"
#include "modules.h"
#include "mounts.h"
#include "names.h"
#include "network.h"
#include "ports.h"
#include "protocol.h"
#include "rehearsal-program.h"
#include "spawn.h"
#include "system-files.h"
#include "trust-place.h"
#include "virtio.h"
#include "volumes.h"
#include "vsock.h"
#include "warm-up.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <unistd.h>

static struct agent agent;
static struct ports ports;
static struct cgroups groups;

static bool take_network_and_image(const struct network *network, struct failure *failure) {
  return network_apply(network, failure) && mounts_take_image(failure);
}

static bool take_identity_and_disk(const struct workload *workload, struct failure *failure) {
  if (!identity_apply(&workload->identity, failure)) return false;
  boot_id_settle();
  return mounts_take_disk(failure);
}

// As with a wake: a machine without its address, or with another one's randomness, is not the requested one.
static bool take(const struct workload *workload, struct failure *failure) {
  struct aside aside;
  struct failure of_aside;
  if (aside_begin(&aside, &workload->identity.network)) network_taken();
  bool good = take_identity_and_disk(workload, failure);
  if (aside_end(&aside, &of_aside)) return good;
  if (good) *failure = of_aside;
  return false;
}

static bool prepare(const struct workload *workload, struct cgroups *cgroups, struct failure *failure) {
  static const struct trust none;
  virtio_bind();
  *cgroups = groups;
  if (!take(workload, failure) || !mounts_enter_root(workload, failure)) return false;
  system_files_make();
  boot_id_place();
  names_write(&workload->identity);
  trust_place(mounts_root(), mounts_disk(), workload->trust == NULL ? &none : workload->trust);
  return true;
}

// For a rehearsal: the same, with a control group that can be removed again, and a program.
static bool prepare_rehearsal(const struct workload *workload, struct cgroups *cgroups, struct failure *failure) {
  aside_forget();
  if (!prepare(workload, cgroups, failure)) return false;
  cgroups->program = cgroups_open(groups.root, "rehearsal");
  return rehearsal_program_place(failure);
}

static bool clear_rehearsal(struct failure *failure) {
  cgroups_remove(groups.root, "rehearsal");
  return virtio_release(failure);
}

static bool identify(const struct identity *now, const struct identity *wake, struct failure *failure) {
  struct failure of_network;
  bool good = identity_apply(wake, failure);
  if (!network_apply(&wake->network, &of_network)) {
    if (good) *failure = of_network;
    return false;
  }
  if (!good) return false;
  names_renew(now, wake);
  return !wake->new_machine || boot_id_renew(failure);
}

// Slow work that needs neither a disk nor the workload: a template of this machine has already done it.
static void prepare_early(void) {
  struct failure problem;
  virtio_hold();
  modules_load(disks_initrd, "modules.late");
  mounts_make_folders();
  system_files_prepare();
  cgroups_make(&groups, "/sys/fs/cgroup");
  if (!network_loopback(&problem) || !network_prepare(&problem)) log_problem("%s", problem.message);
  identity_prepare();
  warm_up_prepare();
  // Last, since it knows what this program knows by now.
  aside_prepare(take_network_and_image);
}

static void power_off(void) {
  mounts_freeze();
  ports_close(&ports);
  // A machine without a power switch would hang for ever: its VMM ends on a reset.
  if (!boot_word("berth.off=reset")) reboot(RB_POWER_OFF);
  // Reached only when the machine has no power switch: with -no-reboot a reset ends the VMM as well.
  reboot(RB_AUTOBOOT);
  for (;;) pause();
}

static const struct rehearsal_place place = {
  .namespaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWPID, .program = REHEARSAL_PROGRAM, .prepare = prepare_rehearsal, .leave = rehearsal_program_wipe, .clear = clear_rehearsal,
};
static const struct init_place init_place = { .make_root = init_root_make, .started = boot_id_place };
static struct platform platform = {
  .is_init = true, .init = &init_place, .prepare = prepare, .identify = identify, .finish = power_off, .rehearsal = &place,
  .mount = volume_mount, .unmount = volume_unmount, .warm_up = warm_up, .bind = virtio_bind,
};

static bool call_over_vsock(void) {
  ports = (struct ports){ vsock_listen(), -1, -1 };
  platform.open_output = vsock_open_output;
  platform.open_report = vsock_open_report;
  return ports.agent >= 0;
}

// Nothing may end the first process: blocks signals, and opens early what mounts of the guest could hide later.
static void settle(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  umask(022);
  mounts_early();
  disks_open();
  log_open();
  proc_folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int fd = 0; fd <= 2; fd++) close(fd);
  if (open("/dev/null", O_RDWR) != 0 || dup(0) != 1 || dup(0) != 2) log_problem("no /dev/null: %s", strerror(errno));
  prctl(PR_SET_DUMPABLE, 0);
}

int main(int argc, char **argv) {
  if (getpid() != 1) {
    int code = argc > 1 ? rehearsal_program_run(argv[1]) : -1;
    if (code >= 0) return code;
    static const char message[] = "berth-init is the first process of a Berth guest; it does nothing elsewhere\n";
    return write(STDERR_FILENO, message, sizeof message - 1) < 0 ? 2 : 1;
  }
  settle();
  bool vsock = boot_word("berth.ports=vsock");
  modules_load(disks_initrd, "modules.early");
  if (vsock) modules_load(disks_initrd, "modules.vsock");
  prepare_early();
  boot_id_begin();
  bool opened = vsock ? call_over_vsock() : ports_open(&ports);
  if (!opened || !agent_init(&agent, &platform, ports.agent, ports.output, ports.report)) {
    log_problem("the agent cannot be started");
    struct ending ending = { .exit_code = EXIT_BOOT_FAILED, .error = "the guest did not find its port to the host" };
    report_write(ports.report, &ending, 1000);
    power_off();
  }
  agent_run(&agent);
  return 0;
}
