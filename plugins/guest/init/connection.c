// The stream to the host: syncs, frames in, frames out, and back-pressure in both directions.
#include "connection.h"
#include "clock.h"
#include "log.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

// Producers of DATA stop at the first mark, reading of the host's frames (which cause answers) at the second; the room above it
// is for the last frames of all channels, so that none is lost for want of it.
enum { OUT_CAPACITY = 384 * 1024, DATA_MARK = 64 * 1024, READ_MARK = 192 * 1024, READS_PER_TURN = 16, READ_SIZE = 65536 };

// The kernel reports a new host through another queue than the one with its first bytes, so a port can have those bytes and still
// report that no host is there. A report that still holds after this time is believed.
enum { AWAY_MS = 100 };

static void mark(struct watch *watch, uint32_t events) {
  struct connection *connection = watch->owner;
  // A hang-up is found by reading: it returns 0 while the host is away.
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) connection->readable = true;
  if ((events & EPOLLOUT) != 0) connection->writable = true;
}

static void lose(struct connection *connection) {
  frame_parser_reset(&connection->parser);
  queue_clear(&connection->out);
  if (connection->listener.fd >= 0) {
    watch_close(connection->epoll, &connection->watch);
    connection->readable = connection->writable = false;
  }
  if (!connection->synced) return;
  connection->synced = false;
  connection->events->lost(connection->owner);
}

static void welcome(struct watch *watch, uint32_t events) {
  (void)events;
  struct connection *connection = watch->owner;
  int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return;
  lose(connection);
  connection->watch.fd = fd;
  connection->readable = connection->writable = true;
  if (!watch_want(connection->epoll, &connection->watch, EPOLLIN | EPOLLOUT | EPOLLET)) lose(connection);
}

static bool listens(int fd) {
  int listening = 0;
  socklen_t size = sizeof listening;
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening != 0;
}

bool connection_init(struct connection *connection, int epoll, int fd, const struct connection_events *events, void *owner) {
  connection->epoll = epoll;
  connection->events = events;
  connection->owner = owner;
  connection->synced = false;
  connection->lost_at = NEVER;
  connection->readable = connection->writable = true;
  frame_parser_reset(&connection->parser);
  bool listening = listens(fd);
  watch_init(&connection->listener, listening ? fd : -1, welcome, connection);
  watch_init(&connection->watch, listening ? -1 : fd, mark, connection);
  if (listening) connection->readable = connection->writable = false;
  if (!watch_want(epoll, &connection->listener, EPOLLIN)) return false;
  // Edge-triggered: a port without a host reports EPOLLHUP all the time, and a level-triggered loop would spin.
  return queue_init(&connection->out, OUT_CAPACITY) && watch_want(epoll, &connection->watch, EPOLLIN | EPOLLOUT | EPOLLET);
}

static void take_sync(void *owner, const uint8_t sync[SYNC_SIZE]) {
  struct connection *connection = owner;
  if (connection->synced) connection->events->lost(connection->owner);
  queue_clear(&connection->out);
  queue_push(&connection->out, sync, SYNC_SIZE);
  connection->synced = true;
  connection->events->opened(connection->owner);
}

static void take_frame(void *owner, const struct frame *frame) {
  struct connection *connection = owner;
  if (frame->type != FRAME_NOP) connection->events->frame(connection->owner, frame);
}

static const struct frame_events parser_events = { take_sync, take_frame };

bool connection_may_read(const struct connection *connection) {
  return connection->readable && connection->out.used <= READ_MARK;
}

static void receive(struct connection *connection) {
  static uint8_t bytes[READ_SIZE];
  for (int turn = 0; turn < READS_PER_TURN && connection_may_read(connection); turn++) {
    ssize_t got = read(connection->watch.fd, bytes, sizeof bytes);
    if (got > 0) {
      frame_parser_feed(&connection->parser, bytes, (size_t)got, &parser_events, connection);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    connection->readable = false;
    // A connection that has ended does not come back; a port's host may be on its way.
    if (got == 0 && connection->listener.fd >= 0) lose(connection);
    else if (got == 0 && connection->lost_at == NEVER) connection->lost_at = clock_ms() + AWAY_MS;
    else if (got < 0 && errno != EAGAIN) lose(connection);
  }
}

uint64_t connection_update(struct connection *connection, uint64_t now) {
  if (now < connection->lost_at) return connection->lost_at;
  connection->lost_at = NEVER;
  struct pollfd look = { .fd = connection->watch.fd };
  if (poll(&look, 1, 0) > 0 && (look.revents & POLLHUP) != 0) lose(connection);
  return NEVER;
}

void connection_flush(struct connection *connection) {
  while (connection->out.used > 0 && connection->writable) {
    ssize_t written = queue_write(&connection->out, connection->watch.fd);
    if (written > 0 || (written < 0 && errno == EINTR)) continue;
    connection->writable = false;
    if (written < 0 && errno != EAGAIN) lose(connection);
  }
}

void connection_pump(struct connection *connection) {
  connection_flush(connection);
  receive(connection);
  connection_flush(connection);
}

void connection_send(struct connection *connection, const struct frame *frame) {
  if (!connection->synced) return;
  uint8_t header[FRAME_HEADER];
  if (queue_room(&connection->out) < FRAME_HEADER + frame->length) {
    log_problem("the queue to the host is full: dropping a frame of type %d", frame->type);
    return;
  }
  frame_write_header(header, frame);
  queue_push(&connection->out, header, sizeof header);
  queue_push(&connection->out, frame->payload, frame->length);
}

bool connection_has_room(const struct connection *connection) {
  return connection->synced && connection->out.used < DATA_MARK;
}
