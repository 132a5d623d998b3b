// What the server and berth-spawner say to each other, over its standard input and output. frames.ts is the other end.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Before each payload; in the byte order of the host, since both ends are on it.
struct header {
  uint32_t command; // chosen by the server, and not used again while the command runs
  uint32_t type;
  uint32_t length; // bytes of the payload
};

enum {
  // from the server
  FRAME_START = 1, // struct start, the texts each ended by a NUL, then the command's input
  FRAME_KILL,      // nothing

  // to the server
  FRAME_STDOUT, // bytes
  FRAME_STDERR, // bytes
  FRAME_STARTED, // int32_t pid; of a process in the background only
  FRAME_ENDED,  // int32_t status of waitpid(2)
  FRAME_FAILED, // int32_t errno: it was not started
};

struct start {
  uint32_t bytes; // of the texts, which come in this order
  uint32_t words; // working folder, program, its arguments from the program's name on
  uint32_t variables;
  uint32_t files; // paths that are opened for reading, as descriptor 3 and on
  uint32_t log;   // 1: a process in the background, and the path of the file that its output is appended to
  uint32_t input; // 1: what follows the texts is the standard input; 0: that is /dev/null
};

// The next frame that the server has sent, if it is there whole. `*payload` is good until the next call. False with `*over` set: the server has gone, or talks nonsense.
bool frame_next(struct header *header, const uint8_t **payload, bool *over);
// Reads once what the server has sent.
void frame_read(void);
// Sends a frame. Returns false when the server has gone.
bool frame_send(uint32_t command, uint32_t type, const void *payload, size_t length);
