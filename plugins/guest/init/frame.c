// Cuts the host's byte stream into syncs and frames, and writes the headers of our own frames.
#include "frame.h"
#include <string.h>

const uint8_t frame_magic[MAGIC_SIZE] = { 0xB7, 'B', 'E', 'R', 'T', 'H', '1', 0x0A };

static uint32_t read_u32(const uint8_t *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void write_u32(uint8_t *p, uint32_t value) {
  for (int i = 0; i < 4; i++) p[i] = (uint8_t)(value >> (8 * i));
}

void frame_write_header(uint8_t header[FRAME_HEADER], const struct frame *frame) {
  write_u32(header, frame->length);
  write_u32(header + 4, frame->channel);
  header[8] = frame->type;
  header[9] = frame->stream;
  header[10] = header[11] = 0;
}

void frame_parser_reset(struct frame_parser *parser) {
  parser->state = FRAME_SEARCH;
  parser->have = 0;
}

// Strict on purpose: wherever the zero bytes of a resynchronisation end, the magic after them must not pass as a header.
static bool header_is_valid(const struct frame *frame, const uint8_t head[FRAME_HEADER]) {
  if (frame->length > FRAME_PAYLOAD_MAX || head[10] != 0 || head[11] != 0) return false;
  switch (frame->type) {
    case FRAME_NOP:
      return frame->length == 0 && frame->channel == 0 && frame->stream == 0;
    case FRAME_OPEN:
    case FRAME_CONTROL:
      return frame->channel != 0 && frame->stream == 0;
    case FRAME_DATA:
      return frame->channel != 0 && frame->stream <= STREAM_ERROR;
    case FRAME_EOF:
      return frame->channel != 0 && frame->stream <= STREAM_ERROR && frame->length == 0;
    case FRAME_CREDIT:
      return frame->channel != 0 && frame->stream <= STREAM_ERROR && frame->length == 4;
    default:
      return false;
  }
}

// The first byte of the magic occurs in it only once, so a mismatch never hides a later start.
static void search(struct frame_parser *parser, uint8_t byte) {
  if (byte == frame_magic[parser->have]) parser->have++;
  else parser->have = byte == frame_magic[0] ? 1 : 0;
  if (parser->have < MAGIC_SIZE) return;
  memcpy(parser->head, frame_magic, MAGIC_SIZE);
  parser->state = FRAME_SYNC;
}

static void deliver(struct frame_parser *parser, const struct frame_events *events, void *owner) {
  parser->state = FRAME_HEAD;
  parser->have = 0;
  parser->frame.payload = parser->body;
  events->frame(owner, &parser->frame);
}

static void header_complete(struct frame_parser *parser, const struct frame_events *events, void *owner) {
  if (memcmp(parser->head, frame_magic, MAGIC_SIZE) == 0) {
    parser->state = FRAME_SYNC;
    return;
  }
  struct frame *frame = &parser->frame;
  frame->length = read_u32(parser->head);
  frame->channel = read_u32(parser->head + 4);
  frame->type = parser->head[8];
  frame->stream = parser->head[9];
  if (header_is_valid(frame, parser->head)) {
    parser->state = FRAME_BODY;
    parser->have = 0;
    if (frame->length == 0) deliver(parser, events, owner);
    return;
  }
  // The start of a sync may be within these bytes.
  uint8_t again[FRAME_HEADER];
  memcpy(again, parser->head, sizeof again);
  frame_parser_reset(parser);
  frame_parser_feed(parser, again, sizeof again, events, owner);
}

// Copies the missing bytes, up to `want`; returns how many it took.
static size_t collect(struct frame_parser *parser, uint8_t *into, size_t want, const uint8_t *bytes, size_t length) {
  size_t take = want - parser->have;
  if (take > length) take = length;
  memcpy(into + parser->have, bytes, take);
  parser->have += take;
  return take;
}

void frame_parser_feed(struct frame_parser *parser, const uint8_t *bytes, size_t length,
                       const struct frame_events *events, void *owner) {
  while (length > 0) {
    size_t taken = 1;
    switch (parser->state) {
      case FRAME_SEARCH:
        search(parser, *bytes);
        break;
      case FRAME_SYNC:
        taken = collect(parser, parser->head, SYNC_SIZE, bytes, length);
        if (parser->have < SYNC_SIZE) break;
        parser->state = FRAME_HEAD;
        parser->have = 0;
        events->sync(owner, parser->head);
        break;
      case FRAME_HEAD:
        taken = collect(parser, parser->head, FRAME_HEADER, bytes, length);
        if (parser->have == FRAME_HEADER) header_complete(parser, events, owner);
        break;
      case FRAME_BODY:
        taken = collect(parser, parser->body, parser->frame.length, bytes, length);
        if (parser->have == parser->frame.length) deliver(parser, events, owner);
        break;
    }
    bytes += taken;
    length -= taken;
  }
}
