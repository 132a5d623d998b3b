// One channel of the host: a child process, its streams with their credit, and the rules for when its RESULT is due.
#include "channel.h"
#include "clock.h"
#include "failure.h"
#include "pty.h"
#include "result.h"
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUIET_MS = 100, OTHERS_MS = 1000, CLEAN_UP_MS = 1000, CREDIT_STEP = 65536 };

static void send_frame(struct channel *channel, uint8_t type, uint8_t stream, void *payload, size_t length) {
  if (channel->dropped) return;
  struct frame frame = { .type = type, .stream = stream, .channel = channel->id, .length = (uint32_t)length, .payload = payload };
  connection_send(channel->connection, &frame);
}

static void kill_group(struct channel *channel, int number) {
  // Once the child is reaped and the rest of its group has ended, too, the number may be another group's.
  // What a command has left behind is left alone anyway.
  if (channel->exited) return;
  // The child makes its process group itself; until then only the child can be signalled.
  if (channel->kind == CHANNEL_FILES || kill(-channel->pid, number) < 0) kill(channel->pid, number);
}

// --- input ---

static void give_credit(struct channel *channel) {
  if (channel->input_taken < CREDIT_STEP) return;
  uint8_t bytes[4];
  for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)(channel->input_taken >> (8 * i));
  channel->input_credit += channel->input_taken;
  channel->input_taken = 0;
  send_frame(channel, FRAME_CREDIT, STREAM_IN, bytes, sizeof bytes);
}

static void close_input(struct channel *channel) {
  watch_close(channel->epoll, &channel->input);
  channel->input_taken += (uint32_t)channel->pending.used;
  queue_free(&channel->pending);
  give_credit(channel);
}

// A partial line needs the character twice: the first one only submits the line.
static void type_eof(struct channel *channel) {
  int character = pty_eof_character(channel->input.fd);
  char typed[2] = { (char)character, (char)character };
  if (character < 0) typed[0] = typed[1] = 4;
  bool partial = character >= 0 && channel->last_typed != '\n' && channel->last_typed != '\r' && channel->last_typed != 0;
  // A full terminal loses the character; its command has enough to read already.
  if (write(channel->input.fd, typed, partial ? 2 : 1) < 0) return;
}

static void input_writable(struct watch *watch, uint32_t events) {
  struct channel *channel = watch->owner;
  (void)events;
  while (channel->input.fd >= 0 && channel->pending.used > 0) {
    char last = (char)channel->pending.bytes[(channel->pending.start + channel->pending.used - 1) % channel->pending.capacity];
    ssize_t written = queue_write(&channel->pending, channel->input.fd);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) break;
    if (written <= 0) {
      close_input(channel);
      return;
    }
    channel->input_taken += (uint32_t)written;
    channel->last_typed = last;
  }
  give_credit(channel);
  if (channel->pending.used > 0 || !channel->input_ended || channel->input.fd < 0) return;
  if (channel->tty) type_eof(channel);
  close_input(channel);
}

// The host broke the rules of the stream: the channel ends, the connection goes on.
static void violated(struct channel *channel) {
  channel_cancel(channel);
}

void channel_data(struct channel *channel, const struct frame *frame) {
  if (frame->stream != STREAM_IN || channel->input_ended || frame->length > channel->input_credit) {
    violated(channel);
    return;
  }
  channel->input_credit -= frame->length;
  if (channel->input.fd < 0) {
    channel->input_taken += frame->length;
    give_credit(channel);
    return;
  }
  bool ready = channel->pending.bytes != NULL || queue_init(&channel->pending, STREAM_CREDIT);
  if (!ready || !queue_push(&channel->pending, frame->payload, frame->length)) {
    violated(channel);
    return;
  }
  input_writable(&channel->input, EPOLLOUT);
}

void channel_input_end(struct channel *channel, const struct frame *frame) {
  if (frame->stream != STREAM_IN || channel->input_ended) return;
  channel->input_ended = true;
  if (channel->input.fd >= 0) input_writable(&channel->input, EPOLLOUT);
}

// --- output ---

void channel_credit(struct channel *channel, uint8_t stream, uint32_t bytes) {
  for (int i = 0; i < 2; i++) {
    struct channel_output *output = &channel->outputs[i];
    if (output->stream != stream) continue;
    output->credit = bytes > UINT32_MAX - output->credit ? UINT32_MAX : output->credit + bytes;
  }
}

static void close_output(struct channel *channel, struct channel_output *output) {
  if (output->watch.fd < 0) return;
  watch_close(channel->epoll, &output->watch);
  send_frame(channel, FRAME_EOF, output->stream, NULL, 0);
}

static bool may_read(const struct channel *channel, const struct channel_output *output) {
  return output->watch.fd >= 0 && output->credit > 0 && connection_has_room(channel->connection);
}

// One read; true when it gave something.
static bool read_output(struct channel *channel, struct channel_output *output) {
  static uint8_t bytes[FRAME_PAYLOAD_MAX];
  size_t limit = output->credit < sizeof bytes ? output->credit : sizeof bytes;
  ssize_t got = read(output->watch.fd, bytes, limit);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  // A terminal whose other end is closed gives EIO.
  if (got <= 0) {
    close_output(channel, output);
    return false;
  }
  output->credit -= (uint32_t)got;
  output->own_left -= (int)got;
  output->quiet_at = clock_ms() + QUIET_MS;
  send_frame(channel, FRAME_DATA, output->stream, bytes, (size_t)got);
  return true;
}

static void output_readable(struct watch *watch, uint32_t events) {
  struct channel *channel = watch->owner;
  (void)events;
  struct channel_output *output = watch == &channel->outputs[0].watch ? &channel->outputs[0] : &channel->outputs[1];
  if (may_read(channel, output)) read_output(channel, output);
}

// After the exit, background children may hold the pipe for ever. So output ends after a silence, and at the latest when everything
// that the command itself wrote was read and a second has passed since the exit.
static uint64_t settle_output(struct channel *channel, struct channel_output *output, uint64_t now) {
  if (output->watch.fd < 0 || !channel->exited) return NEVER;
  if (!may_read(channel, output)) {
    output->quiet_at = now + QUIET_MS;
    return NEVER;
  }
  bool others_only = output->own_left <= 0 && now >= channel->exited_at + OTHERS_MS;
  if (now < output->quiet_at && !others_only) return output->quiet_at;
  if (others_only || !read_output(channel, output)) close_output(channel, output);
  return output->watch.fd < 0 ? NEVER : output->quiet_at;
}

// --- the child ---

static void status_readable(struct watch *watch, uint32_t events) {
  struct channel *channel = watch->owner;
  (void)events;
  size_t room = sizeof channel->status_bytes - channel->status_length;
  ssize_t got = room == 0 ? 0 : read(watch->fd, channel->status_bytes + channel->status_length, room);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) watch_close(channel->epoll, watch);
  else channel->status_length += (size_t)got;
}

void channel_start(struct channel *channel, uint32_t id, struct connection *connection, const struct channel_start *start) {
  *channel = (struct channel){
    .used = true, .id = id, .kind = start->kind, .connection = connection, .epoll = connection->epoll, .pid = start->pid,
    .tty = start->tty, .input_credit = STREAM_CREDIT, .timeout_at = start->timeout_at, .kill_at = NEVER,
  };
  watch_init(&channel->input, start->input, input_writable, channel);
  watch_init(&channel->status, start->status, status_readable, channel);
  for (int i = 0; i < 2; i++) {
    struct channel_output *output = &channel->outputs[i];
    output->stream = i == 0 ? STREAM_OUT : STREAM_ERROR;
    output->credit = STREAM_CREDIT;
    watch_init(&output->watch, i == 0 ? start->output : start->error, output_readable, channel);
  }
}

void channel_signal(struct channel *channel, int number) {
  if (channel->kind == CHANNEL_COMMAND && number > 0 && number < NSIG) kill_group(channel, number);
}

static void end_child(struct channel *channel) {
  // The signal is sent before the input is closed, so that a half-written file is not taken for a complete one.
  kill_group(channel, channel->kind == CHANNEL_COMMAND ? SIGKILL : SIGTERM);
  channel->kill_at = clock_ms() + CLEAN_UP_MS;
}

void channel_cancel(struct channel *channel) {
  if (channel->cancelled) return;
  channel->cancelled = true;
  end_child(channel);
  close_input(channel);
  // Nobody wants what is still in the pipes, and waiting for credit could take for ever.
  for (int i = 0; i < 2; i++) close_output(channel, &channel->outputs[i]);
}

static void release(struct channel *channel) {
  watch_close(channel->epoll, &channel->input);
  watch_close(channel->epoll, &channel->status);
  for (int i = 0; i < 2; i++) watch_close(channel->epoll, &channel->outputs[i].watch);
  queue_free(&channel->pending);
}

void channel_drop(struct channel *channel) {
  if (!channel->used || channel->dropped) return;
  channel->dropped = true;
  end_child(channel);
  release(channel);
  if (channel->exited) channel->used = false;
}

// Not by watch_close: the epoll is the agent's, too, and still has these.
void channel_forget(const struct channel *channel) {
  if (!channel->used) return;
  const int fds[] = { channel->input.fd, channel->outputs[0].watch.fd, channel->outputs[1].watch.fd, channel->status.fd };
  for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
    if (fds[i] >= 0) close(fds[i]);
  }
}

void channel_exited(struct channel *channel, int wait_status) {
  channel->exited = true;
  channel->wait_status = wait_status;
  channel->exited_at = clock_ms();
  for (int i = 0; i < 2; i++) {
    struct channel_output *output = &channel->outputs[i];
    output->quiet_at = channel->exited_at + QUIET_MS;
    if (output->watch.fd < 0 || ioctl(output->watch.fd, FIONREAD, &output->own_left) < 0) output->own_left = 0;
  }
  if (channel->dropped) channel->used = false;
}

static uint64_t check_deadlines(struct channel *channel, uint64_t now) {
  if (channel->exited) return NEVER;
  if (now >= channel->timeout_at) {
    channel->timed_out = true;
    channel->timeout_at = NEVER;
    kill_group(channel, SIGKILL);
  }
  if (now >= channel->kill_at) {
    kill_group(channel, SIGKILL);
    channel->kill_at = now + CLEAN_UP_MS;
  }
  return clock_first(channel->timeout_at, channel->kill_at);
}

static void finish(struct channel *channel) {
  uint8_t bytes[CHANNEL_STATUS_MAX];
  struct writer result = { .bytes = bytes, .capacity = sizeof bytes };
  if (channel->kind == CHANNEL_COMMAND) result_of_command(channel, &result);
  else result_of_files(channel, &result);
  send_frame(channel, FRAME_RESULT, 0, result.bytes, result.length);
  release(channel);
  channel->used = false;
}

uint64_t channel_update(struct channel *channel, uint64_t now) {
  uint64_t next = check_deadlines(channel, now);
  if (channel->dropped) return next;
  watch_want(channel->epoll, &channel->input, channel->pending.used > 0 ? EPOLLOUT : 0);
  watch_want(channel->epoll, &channel->status, EPOLLIN);
  bool over = channel->exited && channel->status.fd < 0;
  for (int i = 0; i < 2; i++) {
    struct channel_output *output = &channel->outputs[i];
    next = clock_first(next, settle_output(channel, output, now));
    watch_want(channel->epoll, &output->watch, may_read(channel, output) ? EPOLLIN : 0);
    if (output->watch.fd >= 0) over = false;
  }
  if (over) finish(channel);
  return next;
}
