// The host's side of the protocol for the C tests: an agent in a child process behind a socket pair, and calls that wait for its answers.
#ifndef CLIENT_H
#define CLIENT_H

#include "fields.h"
#include "frame.h"
#include "protocol.h"
#include "agent.h"
#include <stdbool.h>
#include <sys/types.h>

enum { CLIENT_OUTPUT_MAX = 8 << 20 };

struct client {
  int fd;
  int output; // read end of the program's output
  int report; // read end of the report
  pid_t agent;
  uint32_t next_channel;
  bool started;
  bool exited;
  uint8_t last_event[1024 + 1];
  size_t last_event_length;
};

// What came back on one channel.
struct answer {
  bool ended; // false: no RESULT came in time
  uint8_t payload[FRAME_PAYLOAD_MAX + 1];
  struct fields fields;
  char *bytes[3]; // by stream
  size_t length[3];
  bool eof[3];
  uint32_t credited;
};

// A folder that stands for the hierarchy of control groups of the next agent; NULL: it has none. What a `wake` says goes into the
// file `woken` in it; the hostname "refused" cannot be applied. What a `run` is to trust goes into the file `trusted`.
extern const char *client_groups;
// Where the next agent rehearses; NULL: nowhere.
extern const struct rehearsal_place *client_place;
// How the next agent starts an init, with mounts of its own; NULL: as any other program.
extern const struct init_place *client_init;

// How the next agent mounts and unmounts volumes; NULL: it has none.
extern bool (*client_mount)(const struct volume *volume, dev_t *place, struct failure *failure);
extern bool (*client_unmount)(const struct volume *volume, dev_t *place, struct failure *failure);

void client_start(struct client *client);
// Lets go of the agent's socket, as a host does that dies.
void client_hang_up(struct client *client);
// Waits for the agent's process; true when it ended by itself in time and without a fault of a sanitizer.
bool client_join(struct client *client, int limit_ms);
// Kills it if need be, frees everything.
void client_end(struct client *client);

void client_send(struct client *client, uint8_t type, uint32_t channel, uint8_t stream, const void *payload, size_t length);
// Sends a sync, waits for its echo and HELLO; the phase, or NULL.
const char *client_sync(struct client *client);
// A new channel with these fields: pairs of tag and value, ended by 0. Strings, or for tags of numbers a `long`.
uint32_t client_open(struct client *client, const char *kind, ...);
void client_control(struct client *client, uint32_t channel, const char *operation, ...);
void client_credit(struct client *client, uint32_t channel, uint8_t stream, uint32_t bytes);
// Reads until the channel's RESULT or the time limit. With `credit`, gives back what came.
void client_answer(struct client *client, uint32_t channel, struct answer *answer, bool credit, int limit_ms);
// Reads until the next frame of the channel and takes it; its type, or -1 when none came in time.
int client_frame(struct client *client, uint32_t channel, struct answer *answer, int limit_ms);
// Reads until stdout holds `text` and at least `length` bytes; true when it came to that.
bool client_until(struct client *client, uint32_t channel, struct answer *answer, const char *text, size_t length, bool credit);
void answer_free(struct answer *answer);
// open, EOF on stream 0 behind `input`, answer.
void client_exec(struct client *client, struct answer *answer, const char *input, const char *script);
// Starts a program that sleeps, so that the guest runs; true when that worked.
bool client_run_sleeper(struct client *client);
// Waits for an event; its fields stay valid until the next one.
bool client_event(struct client *client, const char *name, struct fields *fields, int limit_ms);
// Asks `condition` until it holds, for at most five seconds: what it looks at has nobody to announce it.
bool client_wait_for(bool (*condition)(void));
// Everything that comes until the end of the pipe.
size_t client_read_all(int fd, char *text, size_t size);

#endif
