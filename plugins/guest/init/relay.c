// Carries the program's output from its pipe to the output port; a slow port holds the program back.
#include "relay.h"
#include "clock.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { RELAY_CAPACITY = 65536, TERMINAL_PIECE = 2048, TURNS = 16, RETRY_MS = 100 };

static void source_ready(struct watch *watch, uint32_t events) {
  (void)watch, (void)events; // relay_pump, called after each wait, does the work
}

static void port_ready(struct watch *watch, uint32_t events) {
  struct relay *relay = watch->owner;
  if ((events & EPOLLOUT) != 0) relay->port_writable = true;
}

bool relay_init(struct relay *relay, int epoll, int port, int (*open)(void)) {
  relay->epoll = epoll;
  relay->port_writable = true;
  relay->open = open;
  relay->retry_at = NEVER;
  watch_init(&relay->source, -1, source_ready, relay);
  watch_init(&relay->port, port, port_ready, relay);
  // A regular file, as in tests, cannot be polled and is always writable.
  watch_want(epoll, &relay->port, EPOLLOUT | EPOLLET);
  return queue_init(&relay->queue, RELAY_CAPACITY);
}

int relay_open(struct relay *relay) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) return -1;
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  relay->source.fd = ends[0];
  return ends[1];
}

void relay_take(struct relay *relay, int terminal) {
  relay->source.fd = terminal;
  relay->terminal = true;
}

// With a carriage return that was held back, one byte more than was read may have to be queued.
static bool has_room(const struct relay *relay) {
  return queue_room(&relay->queue) > (relay->terminal ? 1 : 0);
}

static ssize_t read_terminal(struct relay *relay) {
  char from[TERMINAL_PIECE], to[TERMINAL_PIECE + 1];
  size_t room = queue_room(&relay->queue) - 1, length = 0;
  ssize_t got = read(relay->source.fd, from, room < sizeof from ? room : sizeof from);
  for (ssize_t i = 0; i < got; i++) {
    bool returns = from[i] == '\r';
    if (relay->returned && !returns && from[i] != '\n') to[length++] = '\r';
    if (!returns) to[length++] = from[i];
    relay->returned = returns;
  }
  queue_push(&relay->queue, to, length);
  return got;
}

static bool fill(struct relay *relay) {
  if (relay->source.fd < 0 || !has_room(relay)) return false;
  ssize_t got = relay->terminal ? read_terminal(relay) : queue_read(&relay->queue, relay->source.fd);
  if (got == 0) watch_close(relay->epoll, &relay->source);
  return got > 0;
}

static void lose(struct relay *relay) {
  watch_close(relay->epoll, &relay->port);
  relay->sent = 0;
  relay->retry_at = clock_after(clock_ms(), RETRY_MS);
}

static bool reach(struct relay *relay) {
  if (relay->port.fd >= 0) return true;
  if (relay->retry_at != NEVER && clock_ms() < relay->retry_at) return false;
  relay->port.fd = relay->open();
  if (relay->port.fd < 0) {
    lose(relay);
    return false;
  }
  relay->port_writable = true;
  relay->acknowledged = (struct acknowledged){ 0 };
  relay->retry_at = NEVER;
  return watch_want(relay->epoll, &relay->port, EPOLLIN | EPOLLOUT | EPOLLET);
}

// The queue keeps bytes that were not acknowledged: after a broken connection, the next one begins with them.
static bool hand_over(struct relay *relay) {
  if (!reach(relay)) return false;
  uint64_t before = relay->acknowledged.total;
  if (!acknowledged_read(&relay->acknowledged, relay->port.fd, before + relay->sent)) {
    lose(relay);
    return true;
  }
  size_t taken = (size_t)(relay->acknowledged.total - before);
  queue_drop(&relay->queue, taken);
  relay->sent -= taken;
  if (!relay->port_writable || relay->sent == relay->queue.used) return taken > 0;
  ssize_t written = queue_write_behind(&relay->queue, relay->sent, relay->port.fd);
  if (written > 0) relay->sent += (size_t)written;
  else if (written < 0 && errno == EAGAIN) relay->port_writable = false;
  else if (written < 0 && errno != EINTR) lose(relay);
  return written > 0 || taken > 0;
}

static bool drain(struct relay *relay) {
  if (relay->queue.used == 0) return false;
  if (relay->open != NULL) return hand_over(relay);
  if (relay->port.fd < 0) {
    queue_clear(&relay->queue);
    return true;
  }
  if (!relay->port_writable) return false;
  ssize_t written = queue_write(&relay->queue, relay->port.fd);
  if (written < 0 && errno == EINTR) return true;
  if (written <= 0) relay->port_writable = false;
  // The port itself is broken: continue without it rather than stop the program.
  if (written < 0 && errno != EAGAIN) watch_close(relay->epoll, &relay->port);
  return written > 0;
}

bool relay_pump(struct relay *relay) {
  bool more = true;
  for (int turn = 0; turn < TURNS && more; turn++) {
    bool filled = fill(relay);
    more = drain(relay) || filled;
  }
  watch_want(relay->epoll, &relay->source, has_room(relay) ? EPOLLIN : 0);
  return more;
}

uint64_t relay_due(const struct relay *relay) {
  return relay->queue.used > 0 ? relay->retry_at : NEVER;
}

bool relay_is_drained(const struct relay *relay) {
  return relay->source.fd < 0 && relay->queue.used == 0;
}

bool relay_is_idle(const struct relay *relay) {
  int waiting = 0;
  if (relay->queue.used > 0) return false;
  return relay->source.fd < 0 || ioctl(relay->source.fd, FIONREAD, &waiting) < 0 || waiting == 0;
}

void relay_end(struct relay *relay) {
  while (fill(relay));
  if (has_room(relay)) watch_close(relay->epoll, &relay->source);
}
