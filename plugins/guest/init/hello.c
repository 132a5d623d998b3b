// The facts about the guest that HELLO contains.
#include "hello.h"
#include "boot-id.h"
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>

static const char *const phases[] = { "waiting", "starting", "running", "asleep", "exiting" };

void hello_write(const struct agent *agent, struct writer *hello) {
  struct utsname system;
  struct sysinfo memory;
  struct timespec up;
  char boot_id[BOOT_ID_SIZE];
  uname(&system);
  sysinfo(&memory);
  clock_gettime(CLOCK_BOOTTIME, &up);
  write_number(hello, TAG_PROTOCOL, PROTOCOL_VERSION);
  write_string(hello, TAG_PHASE, phases[agent->phase]);
  write_string(hello, TAG_KERNEL, system.release);
  boot_id_read(boot_id);
  if (boot_id[0] != 0) write_string(hello, TAG_BOOT_ID, boot_id);
  // The same figure as MemTotal of /proc/meminfo.
  write_number(hello, TAG_MEMORY_TOTAL, (uint64_t)memory.totalram * memory.mem_unit);
  write_number(hello, TAG_UPTIME_MS, (uint64_t)up.tv_sec * 1000 + (uint64_t)up.tv_nsec / 1000000);
  write_number(hello, TAG_AGENT, !agent->has_workload || agent->workload.agent);
  if (agent->phase != PHASE_EXITING) return;
  write_number(hello, TAG_EXIT_CODE, (uint64_t)agent->ending.exit_code);
  write_number(hello, TAG_SIGNAL, (uint64_t)agent->ending.signal);
}
