// Cuts the host's byte stream into syncs and frames, and writes the headers of our own frames.
#ifndef FRAME_H
#define FRAME_H

#include "protocol.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const uint8_t frame_magic[MAGIC_SIZE];

struct frame {
  uint8_t type;
  uint8_t stream;
  uint32_t channel;
  uint32_t length;
  uint8_t *payload; // one spare byte follows it, so that fields can be terminated in place
};

// Callbacks of the parser. Pointers are valid during the call only.
struct frame_events {
  void (*sync)(void *owner, const uint8_t sync[SYNC_SIZE]);
  void (*frame)(void *owner, const struct frame *frame);
};

enum frame_state { FRAME_SEARCH, FRAME_SYNC, FRAME_HEAD, FRAME_BODY };

struct frame_parser {
  enum frame_state state;
  size_t have;
  struct frame frame;
  uint8_t head[SYNC_SIZE];
  uint8_t body[FRAME_PAYLOAD_MAX + 1];
};

// Forgets everything; the next valid input is a sync.
void frame_parser_reset(struct frame_parser *parser);
void frame_parser_feed(struct frame_parser *parser, const uint8_t *bytes, size_t length,
                       const struct frame_events *events, void *owner);
void frame_write_header(uint8_t header[FRAME_HEADER], const struct frame *frame);

#endif
