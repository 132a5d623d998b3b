// The facts that the guest introduces itself with.
#include "hello.h"
#include "spawn.h"
#include <fcntl.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const char *const phases[] = { "waiting", "starting", "running", "exiting" };

static void write_boot_id(struct writer *hello) {
  char id[64];
  int fd = proc_folder < 0 ? -1 : openat(proc_folder, "sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? 0 : read(fd, id, sizeof id);
  if (fd >= 0) close(fd);
  while (length > 0 && id[length - 1] == '\n') length--;
  if (length > 0) write_field(hello, TAG_BOOT_ID, id, (size_t)length);
}

void hello_write(const struct agent *agent, struct writer *hello) {
  struct utsname system;
  struct sysinfo memory;
  struct timespec up;
  uname(&system);
  sysinfo(&memory);
  clock_gettime(CLOCK_BOOTTIME, &up);
  write_number(hello, TAG_PROTOCOL, PROTOCOL_VERSION);
  write_string(hello, TAG_PHASE, phases[agent->phase]);
  write_string(hello, TAG_KERNEL, system.release);
  write_boot_id(hello);
  // The same figure as MemTotal of /proc/meminfo.
  write_number(hello, TAG_MEMORY_TOTAL, (uint64_t)memory.totalram * memory.mem_unit);
  write_number(hello, TAG_UPTIME_MS, (uint64_t)up.tv_sec * 1000 + (uint64_t)up.tv_nsec / 1000000);
  write_number(hello, TAG_AGENT, !agent->has_workload || agent->workload.agent);
  if (agent->phase != PHASE_EXITING) return;
  write_number(hello, TAG_EXIT_CODE, (uint64_t)agent->ending.exit_code);
  write_number(hello, TAG_SIGNAL, (uint64_t)agent->ending.signal);
}
