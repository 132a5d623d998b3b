// One channel of the host: a child process, its streams with their credit, and the rules for when its RESULT is due.
#ifndef CHANNEL_H
#define CHANNEL_H

#include "connection.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { CHANNEL_MAX = 64, CHANNEL_STATUS_MAX = 8192 };

enum channel_kind {
  CHANNEL_COMMAND, // exec: the leader of a process group
  CHANNEL_FILES,   // put, get, stat: a fork of this program, which cleans up on SIGTERM
};

struct channel_output {
  struct watch watch;
  uint8_t stream;
  uint32_t credit;
  uint64_t quiet_at; // after the exit: when to stop waiting for those that still hold the pipe
  int own_left;      // after the exit: bytes that were in the pipe at that moment, so surely the command's own
};

struct channel {
  bool used;
  bool dropped; // the host has forgotten it; only the child is still to be reaped
  uint32_t id;
  enum channel_kind kind;
  struct connection *connection;
  int epoll;

  pid_t pid;
  bool exited;
  int wait_status;
  uint64_t exited_at;

  struct watch input;
  struct queue pending;
  bool input_ended;
  bool tty;
  char last_typed;
  uint32_t input_credit; // what the host may still send
  uint32_t input_taken;  // what to give back

  struct channel_output outputs[2];

  struct watch status; // the child's last word: a `struct failure` or the payload of a RESULT
  uint8_t status_bytes[CHANNEL_STATUS_MAX];
  size_t status_length;

  bool timed_out;
  bool cancelled;
  uint64_t timeout_at;
  uint64_t kill_at;
};

// The parts that a new channel takes over; a missing descriptor is -1.
struct channel_start {
  enum channel_kind kind;
  pid_t pid;
  int input;
  int output;
  int error;
  int status;
  bool tty;
  uint64_t timeout_at;
};

void channel_start(struct channel *channel, uint32_t id, struct connection *connection, const struct channel_start *start);
// Handle frames of the host.
void channel_data(struct channel *channel, const struct frame *frame);
void channel_input_end(struct channel *channel, const struct frame *frame);
void channel_credit(struct channel *channel, uint8_t stream, uint32_t bytes);
void channel_signal(struct channel *channel, int number);
// Ends the child; its RESULT follows.
void channel_cancel(struct channel *channel);
// Ends the child without a RESULT.
void channel_drop(struct channel *channel);
// In a fork of the agent: lets go of the copies of its descriptors.
void channel_forget(const struct channel *channel);
void channel_exited(struct channel *channel, int wait_status);
// Brings interests, credit and deadlines up to date and ends the channel when it is over; returns when to look again.
uint64_t channel_update(struct channel *channel, uint64_t now);

#endif
