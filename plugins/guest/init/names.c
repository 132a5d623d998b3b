// Writes the host's values into the root's /etc: hostname, hosts, resolv.conf, and a machine id when the image has none.
#include "names.h"
#include "files.h"
#include "log.h"
#include "mounts.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TEXT_MAX = 2048, MACHINE_ID_BYTES = 16 };

#define MARK "# berth writes this file at each start; without this line it is yours\n"

bool hosts_format(const struct identity *identity, char *text, size_t size) {
  const char *address = identity->network.address[0] == 0 ? "127.0.1.1" : identity->network.address;
  int used = snprintf(text, size,
                      MARK "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
                           "ff02::1\tip6-allnodes\nff02::2\tip6-allrouters\n%.*s\t%s\n",
                      (int)strcspn(address, "/"), address, identity->hostname[0] == 0 ? "localhost" : identity->hostname);
  return used >= 0 && (size_t)used < size;
}

bool resolv_format(const struct network *network, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, MARK);
  for (size_t i = 0; i < network->dns_count && used < size; i++) {
    used += (size_t)snprintf(text + used, size - used, "nameserver %s\n", network->dns[i]);
  }
  return used < size;
}

// Reads the beginning of a regular file, with a NUL after it; false with errno. Follows no link, and ignores what is mounted over the name.
static bool read_beginning(int folder, const char *name, char text[TEXT_MAX]) {
  struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS };
  int fd = (int)syscall(SYS_openat2, folder, name, &how, sizeof how);
  struct stat facts;
  if (fd < 0) return false;
  ssize_t got = fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) ? read(fd, text, TEXT_MAX - 1) : -1;
  close(fd);
  if (got < 0) errno = EINVAL;
  else text[got] = 0;
  return got >= 0;
}

static void replace(int etc, const char *name, const char *text, mode_t mode) {
  int error = file_replace(etc, name, text, mode);
  if (error != 0) log_problem("/etc/%s: %s", name, strerror(error));
}

// The image's own version is replaced, as with docker. A version that was edited inside this instance stays: it is on the
// instance's own disk and does not begin with our mark.
static void write_ours(int etc, const char *name, const char *text) {
  char now[TEXT_MAX], path[64];
  bool readable = read_beginning(etc, name, now);
  bool elsewhere = !readable && (errno == ELOOP || errno == EXDEV);
  snprintf(path, sizeof path, "/etc/%s", name);
  bool edited = (elsewhere || (readable && now[0] != 0 && strncmp(now, MARK, strlen(MARK)) != 0)) && mounts_overlay_has(path);
  bool same = readable && strcmp(now, text) == 0;
  if (!edited && !same) replace(etc, name, text, 0644);
}

static void write_hostname(int etc, const struct identity *identity) {
  char text[NAME_SIZE + 1];
  snprintf(text, sizeof text, "%s\n", identity->hostname);
  replace(etc, "hostname", text, 0644);
}

static void write_addresses(int etc, const struct identity *identity) {
  char text[TEXT_MAX];
  if (hosts_format(identity, text, sizeof text)) write_ours(etc, "hosts", text);
  if (identity->network.dns_count > 0 && resolv_format(&identity->network, text, sizeof text)) write_ours(etc, "resolv.conf", text);
}

// An id in the image is never changed: what was built with it may depend on it. Any other belongs to this
// machine alone, so a clone that becomes another machine gets another id.
static void write_machine_id(int etc, bool anew) {
  char now[TEXT_MAX], text[2 * MACHINE_ID_BYTES + 2];
  uint8_t bytes[MACHINE_ID_BYTES];
  if (mounts_image_has("etc/machine-id")) return;
  bool readable = read_beginning(etc, "machine-id", now);
  bool missing = readable ? now[0] == 0 || now[0] == '\n' : errno == ENOENT;
  if (!missing && !(anew && readable)) return;
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return;
  // Version and variant of a random UUID, as systemd sets them.
  bytes[6] = (uint8_t)((bytes[6] & 0x0F) | 0x40);
  bytes[8] = (uint8_t)((bytes[8] & 0x3F) | 0x80);
  for (int i = 0; i < MACHINE_ID_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
  memcpy(text + 2 * MACHINE_ID_BYTES, "\n", 2);
  replace(etc, "machine-id", text, 0444);
}

void names_write(const struct identity *identity) {
  folder_make("/etc", 0755);
  int etc = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (etc < 0) {
    log_problem("/etc: %s", strerror(errno));
    return;
  }
  if (identity->hostname[0] != 0) write_hostname(etc, identity);
  write_addresses(etc, identity);
  write_machine_id(etc, identity->new_machine);
  close(etc);
}

void names_renew(const struct identity *now, const struct identity *wake) {
  bool named = wake->hostname[0] != 0, moved = wake->network.given;
  if (!named && !moved && !wake->new_machine) return;
  int etc = mounts_open_folder("etc");
  if (etc < 0) {
    log_problem("/etc is not on the machine's own disk, and is left as it is: %s", strerror(errno));
    return;
  }
  if (named) write_hostname(etc, now);
  if (named || moved) write_addresses(etc, now);
  if (wake->new_machine) write_machine_id(etc, true);
  close(etc);
}
