// Frames on standard input and output.
#include "frame.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

// Far more than any command's input; more than that is nonsense.
enum { MAX_PAYLOAD = 1 << 29, ROOM = 1 << 16 };

static struct {
  uint8_t *bytes;
  size_t room;
  size_t from; // what is before has been taken
  size_t to;
  bool ended;
} in;

// Room for `size` bytes from the first one that was not taken.
static bool make_room(size_t size) {
  if (in.from > 0) {
    memmove(in.bytes, in.bytes + in.from, in.to - in.from);
    in.to -= in.from;
    in.from = 0;
  }
  // What one large input took is given back.
  if (in.room >= size && (in.room <= ROOM || size > ROOM || in.to > ROOM)) return true;
  uint8_t *bytes = realloc(in.bytes, size > ROOM ? size : ROOM);
  if (bytes == NULL) return false;
  in.bytes = bytes;
  in.room = size > ROOM ? size : ROOM;
  return true;
}

void frame_read(void) {
  if (in.to == in.room && !make_room(in.to - in.from + 1)) {
    in.ended = true;
    return;
  }
  ssize_t got = read(STDIN_FILENO, in.bytes + in.to, in.room - in.to);
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) in.ended = true;
  else in.to += (size_t)got;
}

bool frame_next(struct header *header, const uint8_t **payload, bool *over) {
  size_t have = in.to - in.from;
  *over = in.ended;
  if (have < sizeof *header) {
    if (!make_room(ROOM)) *over = true;
    return false;
  }
  memcpy(header, in.bytes + in.from, sizeof *header);
  if (header->length > MAX_PAYLOAD) {
    *over = true;
    return false;
  }
  size_t whole = sizeof *header + header->length;
  if (have < whole) {
    if (!make_room(whole)) *over = true;
    return false;
  }
  *payload = in.bytes + in.from + sizeof *header;
  in.from += whole;
  return true;
}

bool frame_send(uint32_t command, uint32_t type, const void *payload, size_t length) {
  struct header header = { .command = command, .type = type, .length = (uint32_t)length };
  struct iovec parts[2] = { { .iov_base = &header, .iov_len = sizeof header }, { .iov_base = (void *)payload, .iov_len = length } };
  struct iovec *part = parts;
  int count = 2;
  while (count > 0) {
    ssize_t written = writev(STDOUT_FILENO, part, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    for (size_t rest = (size_t)written; count > 0;) {
      if (rest < part->iov_len) {
        part->iov_base = (uint8_t *)part->iov_base + rest;
        part->iov_len -= rest;
        break;
      }
      rest -= part->iov_len;
      part++;
      count--;
    }
  }
  return true;
}
