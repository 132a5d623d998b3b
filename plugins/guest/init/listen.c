// The kinds `listen`, `accept` and `connect`: a port of loopback and its connections, and those to a program, each a channel of the host.
#include "listen.h"
#include "dial.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 128, CREDIT_STEP = 65536 };

static void send_frame(struct listen_channel *channel, uint8_t type, uint8_t stream, void *payload, size_t length) {
  struct frame frame = { .type = type, .stream = stream, .channel = channel->id, .length = (uint32_t)length, .payload = payload };
  connection_send(channel->listen->connection, &frame);
}

// Reports that it listens, or has a connection.
static void send_begun(struct listen_channel *channel) {
  send_frame(channel, FRAME_DATA, STREAM_OUT, NULL, 0);
}

static void release(struct listen_channel *channel) {
  watch_close(channel->listen->connection->epoll, &channel->watch);
  queue_free(&channel->pending);
  channel->used = false;
}

// A connection that was cut off must not look like a complete one.
static void reset(struct listen_channel *channel) {
  struct linger linger = { .l_onoff = 1, .l_linger = 0 };
  if (channel->role == LISTEN_TALKING) setsockopt(channel->watch.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
  release(channel);
}

static void end(struct listen_channel *channel, int error, const char *reason) {
  uint8_t bytes[256];
  struct writer result = { .bytes = bytes, .capacity = sizeof bytes };
  if (error != 0) write_string(&result, TAG_ERROR, reason);
  if (error != 0) write_number(&result, TAG_ERRNO, (uint64_t)error);
  send_frame(channel, FRAME_RESULT, 0, result.bytes, result.length);
  if (error != 0) reset(channel);
  else release(channel);
}

// --- what the host sends ---

static void give_credit(struct listen_channel *channel) {
  if (channel->input_taken < CREDIT_STEP) return;
  uint8_t bytes[4];
  for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)(channel->input_taken >> (8 * i));
  channel->input_credit += channel->input_taken;
  channel->input_taken = 0;
  send_frame(channel, FRAME_CREDIT, STREAM_IN, bytes, sizeof bytes);
}

// The program reads no more: further data is dropped, and counts as read.
static void close_input(struct listen_channel *channel) {
  channel->input_over = true;
  channel->input_taken += (uint32_t)channel->pending.used;
  queue_free(&channel->pending);
  give_credit(channel);
}

static void write_input(struct listen_channel *channel) {
  while (channel->pending.used > 0) {
    ssize_t written = queue_write(&channel->pending, channel->watch.fd);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) break;
    if (written <= 0) {
      close_input(channel);
      return;
    }
    channel->input_taken += (uint32_t)written;
  }
  give_credit(channel);
  if (channel->pending.used > 0 || !channel->input_ended || channel->input_over) return;
  shutdown(channel->watch.fd, SHUT_WR);
  close_input(channel);
}

static void take_data(struct listen_channel *channel, const struct frame *frame) {
  bool allowed = channel->role == LISTEN_TALKING && frame->stream == STREAM_IN && !channel->input_ended && frame->length <= channel->input_credit;
  if (!allowed) {
    end(channel, EPROTO, "the host broke the rules of the stream");
    return;
  }
  channel->input_credit -= frame->length;
  if (channel->input_over) {
    channel->input_taken += frame->length;
    give_credit(channel);
    return;
  }
  bool ready = channel->pending.bytes != NULL || queue_init(&channel->pending, STREAM_CREDIT);
  if (!ready || !queue_push(&channel->pending, frame->payload, frame->length)) {
    end(channel, ENOMEM, "there is no memory for what the host sends");
    return;
  }
  write_input(channel);
}

static void take_end(struct listen_channel *channel) {
  if (channel->role != LISTEN_TALKING) {
    end(channel, EPROTO, "the host broke the rules of the stream");
    return;
  }
  channel->input_ended = true;
  if (!channel->input_over) write_input(channel);
}

// --- what the program sends ---

static bool may_read(const struct listen_channel *channel) {
  return !channel->output_ended && channel->output_credit > 0 && connection_has_room(channel->listen->connection);
}

static void read_output(struct listen_channel *channel) {
  static uint8_t bytes[FRAME_PAYLOAD_MAX];
  size_t limit = channel->output_credit < sizeof bytes ? channel->output_credit : sizeof bytes;
  ssize_t got = read(channel->watch.fd, bytes, limit);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) {
    end(channel, errno, strerror(errno));
    return;
  }
  if (got == 0) {
    channel->output_ended = true;
    send_frame(channel, FRAME_EOF, STREAM_OUT, NULL, 0);
    return;
  }
  channel->output_credit -= (uint32_t)got;
  send_frame(channel, FRAME_DATA, STREAM_OUT, bytes, (size_t)got);
}

// --- connections ---

static struct listen_channel *find(struct listen *listen, enum listen_role role, uint16_t port) {
  struct listen_channel *found = NULL;
  for (int i = 0; i < CHANNEL_MAX; i++) {
    struct listen_channel *channel = &listen->channels[i];
    bool fits = channel->used && channel->role == role && channel->port == port;
    if (fits && (found == NULL || channel->turn < found->turn)) found = channel;
  }
  return found;
}

static void talk(struct listen_channel *channel, int fd) {
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  channel->role = LISTEN_TALKING;
  channel->watch.fd = fd;
  channel->input_credit = STREAM_CREDIT;
  send_begun(channel);
}

static void take_connections(struct listen_channel *port) {
  for (struct listen_channel *next; (next = find(port->listen, LISTEN_WAITING, port->port)) != NULL;) {
    int fd = accept4(port->watch.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    // Also a connection that has gone again; the next turn looks for others.
    if (fd < 0) return;
    talk(next, fd);
  }
}

static void call(struct listen_channel *channel) {
  int state = dial_state(channel->watch.fd);
  if (state == 0) talk(channel, channel->watch.fd);
  else if (state != EINPROGRESS) end(channel, state, strerror(state));
}

static void ready(struct watch *watch, uint32_t events) {
  struct listen_channel *channel = watch->owner;
  if (channel->role == LISTEN_CALLING) {
    call(channel);
    return;
  }
  if (channel->role == LISTEN_PORT) {
    take_connections(channel);
    return;
  }
  if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0 && channel->pending.used > 0) write_input(channel);
  if (may_read(channel)) read_output(channel);
}

static struct listen_channel *begin(struct listen *listen, uint32_t id, enum listen_role role, uint16_t port) {
  for (int i = 0; i < CHANNEL_MAX; i++) {
    struct listen_channel *channel = &listen->channels[i];
    if (channel->used) continue;
    *channel = (struct listen_channel){
      .used = true, .id = id, .role = role, .listen = listen, .port = port, .turn = listen->turns++, .output_credit = STREAM_CREDIT,
    };
    watch_init(&channel->watch, -1, ready, channel);
    return channel;
  }
  return NULL;
}

static uint16_t port_in(const struct fields *fields) {
  uint64_t port = fields_number(fields, TAG_PORT, 0);
  return port > UINT16_MAX ? 0 : (uint16_t)port;
}

static int open_port(uint16_t port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  // What is left of an earlier listener's connections does not block the port.
  int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, BACKLOG) == 0) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

bool listen_open(struct listen *listen, uint32_t id, const struct fields *fields, struct failure *failure) {
  uint16_t port = port_in(fields);
  if (port == 0) return fail(failure, EINVAL, NO_EXIT, "the port is missing or no port");
  int fd = open_port(port);
  if (fd < 0) return fail(failure, errno, NO_EXIT, "port %d cannot be listened on: %s", port, strerror(errno));
  struct listen_channel *channel = begin(listen, id, LISTEN_PORT, port);
  if (channel == NULL) {
    close(fd);
    return fail(failure, EAGAIN, NO_EXIT, "too many channels are open");
  }
  channel->watch.fd = fd;
  send_begun(channel);
  return true;
}

bool accept_open(struct listen *listen, uint32_t id, const struct fields *fields, struct failure *failure) {
  uint16_t port = port_in(fields);
  if (find(listen, LISTEN_PORT, port) == NULL) return fail(failure, EINVAL, NO_EXIT, "port %d is not listened on", port);
  return begin(listen, id, LISTEN_WAITING, port) != NULL || fail(failure, EAGAIN, NO_EXIT, "too many channels are open");
}

bool connect_open(struct listen *listen, uint32_t id, const struct fields *fields, struct failure *failure) {
  uint16_t port = port_in(fields);
  const char *address = fields_string(fields, TAG_ADDRESS, "127.0.0.1");
  if (port == 0) return fail(failure, EINVAL, NO_EXIT, "the port is missing or no port");
  int fd = dial(address, port);
  if (fd < 0) return fail(failure, errno, NO_EXIT, "%.64s port %d: %s", address, port, strerror(errno));
  struct listen_channel *channel = begin(listen, id, LISTEN_CALLING, port);
  if (channel == NULL) {
    close(fd);
    return fail(failure, EAGAIN, NO_EXIT, "too many channels are open");
  }
  channel->watch.fd = fd;
  return true;
}

// --- all of them ---

void listen_init(struct listen *listen, struct connection *connection) {
  listen->connection = connection;
}

int listen_count(const struct listen *listen) {
  int count = 0;
  for (int i = 0; i < CHANNEL_MAX; i++) count += listen->channels[i].used;
  return count;
}

static struct listen_channel *by_id(struct listen *listen, uint32_t id) {
  for (int i = 0; i < CHANNEL_MAX; i++) {
    if (listen->channels[i].used && listen->channels[i].id == id) return &listen->channels[i];
  }
  return NULL;
}

bool listen_has(const struct listen *listen, uint32_t id) {
  return by_id((struct listen *)listen, id) != NULL;
}

static void cancel(struct listen_channel *channel) {
  if (channel->role == LISTEN_PORT) {
    for (struct listen_channel *waiting; (waiting = find(channel->listen, LISTEN_WAITING, channel->port)) != NULL;) end(waiting, ECANCELED, "cancelled");
    end(channel, 0, NULL);
    return;
  }
  end(channel, ECANCELED, "cancelled");
}

static void take_control(struct listen_channel *channel, const struct frame *frame) {
  struct fields fields;
  if (fields_parse(frame->payload, frame->length, &fields) != 0) return;
  if (strcmp(fields_string(&fields, TAG_KIND, ""), "cancel") == 0) cancel(channel);
  fields_free(&fields);
}

bool listen_frame(struct listen *listen, const struct frame *frame) {
  struct listen_channel *channel = by_id(listen, frame->channel);
  if (channel == NULL) return false;
  const uint8_t *bytes = frame->payload;
  if (frame->type == FRAME_DATA) take_data(channel, frame);
  else if (frame->type == FRAME_EOF) take_end(channel);
  else if (frame->type == FRAME_CONTROL) take_control(channel, frame);
  else if (frame->type == FRAME_CREDIT && frame->stream == STREAM_OUT) {
    uint32_t credit = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    channel->output_credit = credit > UINT32_MAX - channel->output_credit ? UINT32_MAX : channel->output_credit + credit;
  }
  return true;
}

void listen_drop(struct listen *listen) {
  for (int i = 0; i < CHANNEL_MAX; i++) {
    if (listen->channels[i].used) reset(&listen->channels[i]);
  }
}

// Not by watch_close: the epoll is the agent's, too, and still has these.
void listen_forget(const struct listen *listen) {
  for (int i = 0; i < CHANNEL_MAX; i++) {
    if (listen->channels[i].used && listen->channels[i].watch.fd >= 0) close(listen->channels[i].watch.fd);
  }
}

static uint32_t wanted(const struct listen_channel *channel) {
  if (channel->role == LISTEN_PORT) return find(channel->listen, LISTEN_WAITING, channel->port) != NULL ? EPOLLIN : 0;
  if (channel->role == LISTEN_CALLING) return EPOLLOUT;
  return (may_read(channel) ? EPOLLIN : 0u) | (channel->pending.used > 0 ? EPOLLOUT : 0u);
}

void listen_update(struct listen *listen) {
  for (int i = 0; i < CHANNEL_MAX; i++) {
    struct listen_channel *channel = &listen->channels[i];
    if (!channel->used) continue;
    if (channel->output_ended && channel->input_over) end(channel, 0, NULL);
    else watch_want(listen->connection->epoll, &channel->watch, wanted(channel));
  }
}
