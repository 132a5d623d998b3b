// What makes one machine differ from the next: time, randomness, name and address; given at a start and to each clone of a memory image.
#include "identity.h"
#include "network.h"
#include "protocol.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static bool malformed(struct failure *failure, const char *what) {
  return fail(failure, EINVAL, EXIT_BOOT_FAILED, "the machine's identity is malformed: %s", what);
}

static bool copy_text(char *into, size_t size, const char *text) {
  size_t length = strlen(text);
  if (length >= size) return false;
  memcpy(into, text, length + 1);
  return true;
}

static bool add_dns(struct network *network, const char *text) {
  uint8_t parsed[sizeof(struct in6_addr)];
  if (inet_pton(AF_INET, text, parsed) != 1 && inet_pton(AF_INET6, text, parsed) != 1) return false;
  if (network->dns_count < DNS_MAX) copy_text(network->dns[network->dns_count++], INET6_ADDRSTRLEN, text);
  return true;
}

static bool read_network(const struct fields *fields, struct network *network, struct failure *failure) {
  uint8_t mac[6];
  uint32_t address, mask;
  network->given = true;
  if (!copy_text(network->mac, MAC_SIZE, fields_string(fields, TAG_MAC, "")) ||
      (network->mac[0] != 0 && !network_parse_mac(network->mac, mac))) return malformed(failure, "mac");
  if (!copy_text(network->address, ADDRESS_SIZE, fields_string(fields, TAG_ADDRESS, "")) ||
      (network->address[0] != 0 && !network_parse_address(network->address, &address, &mask))) return malformed(failure, "address");
  if (!copy_text(network->gateway, INET_ADDRSTRLEN, fields_string(fields, TAG_GATEWAY, "")) ||
      (network->gateway[0] != 0 && inet_pton(AF_INET, network->gateway, &address) != 1)) return malformed(failure, "gateway");
  for (size_t i = 0; i < fields->count; i++) {
    const struct field *field = &fields->items[i];
    if (field->tag == TAG_DNS && !add_dns(network, (const char *)field->bytes)) return malformed(failure, "dns");
  }
  return true;
}

bool identity_parse(const struct fields *fields, struct identity *identity, struct failure *failure) {
  *identity = (struct identity){
    .realtime_ns = fields_number(fields, TAG_REALTIME_NS, 0),
    .new_machine = fields_number(fields, TAG_NEW_MACHINE, 0) != 0,
  };
  if (!copy_text(identity->hostname, NAME_SIZE, fields_string(fields, TAG_HOSTNAME, ""))) return malformed(failure, "hostname");
  const struct field *entropy = fields_find(fields, TAG_ENTROPY);
  if (entropy != NULL) {
    identity->entropy_length = entropy->length > ENTROPY_MAX ? ENTROPY_MAX : entropy->length;
    memcpy(identity->entropy, entropy->bytes, identity->entropy_length);
  }
  const struct field *network = fields_find(fields, TAG_NETWORK);
  if (network == NULL) return true;
  struct fields nested;
  int error = fields_parse(network->bytes, network->length, &nested);
  if (error != 0) return malformed(failure, "network");
  bool good = read_network(&nested, &identity->network, failure);
  fields_free(&nested);
  return good;
}

void identity_merge(struct identity *now, const struct identity *later) {
  const struct network *network = &later->network;
  if (later->hostname[0] != 0) memcpy(now->hostname, later->hostname, NAME_SIZE);
  if (!network->given) return;
  now->network.given = true;
  if (network->mac[0] != 0) memcpy(now->network.mac, network->mac, MAC_SIZE);
  if (network->address[0] != 0) memcpy(now->network.address, network->address, ADDRESS_SIZE);
  if (network->gateway[0] != 0) memcpy(now->network.gateway, network->gateway, sizeof network->gateway);
  if (network->dns_count == 0) return;
  memcpy(now->network.dns, network->dns, sizeof network->dns);
  now->network.dns_count = network->dns_count;
}

static bool set_clock(uint64_t realtime_ns, struct failure *failure) {
  struct timespec now = { (time_t)(realtime_ns / 1000000000), (long)(realtime_ns % 1000000000) };
  if (realtime_ns == 0 || clock_settime(CLOCK_REALTIME, &now) == 0) return true;
  return fail(failure, errno, EXIT_BOOT_FAILED, "the clock cannot be set: %s", strerror(errno));
}

static int random_device = -1;

static int open_random(void) {
  return open("/dev/random", O_RDWR | O_CLOEXEC | O_NOCTTY);
}

void identity_prepare(void) {
  random_device = open_random();
}

// Also reseeds, since clones share the generator's state and would produce the same numbers for minutes.
static bool add_entropy(const uint8_t *bytes, size_t length, struct failure *failure) {
  struct {
    struct rand_pool_info info;
    uint8_t bytes[ENTROPY_MAX];
  } pool;
  if (length == 0) return true;
  int fd = random_device >= 0 ? random_device : open_random();
  if (fd < 0) return fail(failure, errno, EXIT_BOOT_FAILED, "/dev/random: %s", strerror(errno));
  pool.info.entropy_count = (int)length * 8;
  pool.info.buf_size = (int)length;
  memcpy(pool.info.buf, bytes, length);
  bool good = ioctl(fd, RNDADDENTROPY, &pool) == 0 && ioctl(fd, RNDRESEEDCRNG) == 0;
  if (!good) fail(failure, errno, EXIT_BOOT_FAILED, "the random generator cannot be reseeded: %s", strerror(errno));
  explicit_bzero(&pool, sizeof pool);
  if (fd != random_device) close(fd);
  return good;
}

static bool set_hostname(const char *hostname, struct failure *failure) {
  if (hostname[0] == 0 || sethostname(hostname, strlen(hostname)) == 0) return true;
  return fail(failure, errno, EXIT_BOOT_FAILED, "the hostname cannot be set: %s", strerror(errno));
}

bool identity_apply(const struct identity *identity, struct failure *failure) {
  struct failure found[3];
  bool good[] = {
    set_clock(identity->realtime_ns, &found[0]),
    add_entropy(identity->entropy, identity->entropy_length, &found[1]),
    set_hostname(identity->hostname, &found[2]),
  };
  for (int i = 0; i < 3; i++) {
    if (good[i]) continue;
    *failure = found[i];
    return false;
  }
  return true;
}
