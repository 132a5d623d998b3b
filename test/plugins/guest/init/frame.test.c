// The frame parser: every split of the stream, every place where a resynchronisation may hit, every invalid header.
#include "check.h"
#include "frame.h"
#include <stdlib.h>
#include <string.h>

struct seen {
  int syncs;
  int frames;
  uint8_t nonce;
  struct frame last;
  uint8_t payload[FRAME_PAYLOAD_MAX];
};

static void on_sync(void *owner, const uint8_t sync[SYNC_SIZE]) {
  struct seen *seen = owner;
  seen->syncs++;
  seen->nonce = sync[SYNC_SIZE - 1];
}

static void on_frame(void *owner, const struct frame *frame) {
  struct seen *seen = owner;
  seen->frames++;
  seen->last = *frame;
  memcpy(seen->payload, frame->payload, frame->length);
}

static const struct frame_events events = { on_sync, on_frame };
static struct frame_parser parser;
static struct seen seen;

static void fresh(void) {
  memset(&seen, 0, sizeof seen);
  frame_parser_reset(&parser);
}

static size_t put_sync(uint8_t *at, uint8_t nonce) {
  memcpy(at, frame_magic, MAGIC_SIZE);
  memset(at + MAGIC_SIZE, nonce, SYNC_SIZE - MAGIC_SIZE);
  return SYNC_SIZE;
}

static size_t put_frame(uint8_t *at, uint8_t type, uint32_t channel, const char *payload) {
  struct frame frame = { .type = type, .channel = channel, .length = (uint32_t)strlen(payload) };
  frame_write_header(at, &frame);
  memcpy(at + FRAME_HEADER, payload, frame.length);
  return FRAME_HEADER + frame.length;
}

static void feed(const uint8_t *bytes, size_t length) {
  // A copy of exactly this length, so that the address sanitizer sees any read beyond it.
  uint8_t *copy = malloc(length == 0 ? 1 : length);
  memcpy(copy, bytes, length);
  frame_parser_feed(&parser, copy, length, &events, &seen);
  free(copy);
}

static void splits(void) {
  uint8_t stream[256];
  size_t length = put_sync(stream, 7);
  length += put_frame(stream + length, FRAME_OPEN, 1, "payload");
  length += put_frame(stream + length, FRAME_EOF, 1, "");
  length += put_frame(stream + length, FRAME_DATA, 2, "more");
  bool held = true;
  for (size_t one = 0; one <= length; one++) {
    for (size_t two = one; two <= length; two++) {
      fresh();
      feed(stream, one);
      feed(stream + one, two - one);
      feed(stream + two, length - two);
      held = held && seen.syncs == 1 && seen.nonce == 7 && seen.frames == 3 && seen.last.length == 4 && memcmp(seen.payload, "more", 4) == 0;
    }
  }
  check(held, "a sync and three frames are read the same, wherever the stream is cut in two places");
}

static void before_sync(void) {
  uint8_t stream[512];
  size_t length = put_frame(stream, FRAME_OPEN, 1, "too early");
  memcpy(stream + length, frame_magic, 5);
  length += 5;
  length += put_sync(stream + length, 1);
  fresh();
  feed(stream, length);
  check(seen.frames == 0 && seen.syncs == 1, "what comes before the first sync is dropped, even a magic that breaks off");
}

static void greatest(void) {
  static uint8_t stream[SYNC_SIZE + FRAME_HEADER + FRAME_PAYLOAD_MAX];
  put_sync(stream, 1);
  struct frame frame = { .type = FRAME_DATA, .channel = 9, .length = FRAME_PAYLOAD_MAX };
  frame_write_header(stream + SYNC_SIZE, &frame);
  memset(stream + SYNC_SIZE + FRAME_HEADER, 'x', FRAME_PAYLOAD_MAX);
  fresh();
  feed(stream, sizeof stream);
  check(seen.frames == 1 && seen.last.length == FRAME_PAYLOAD_MAX && seen.payload[FRAME_PAYLOAD_MAX - 1] == 'x', "a frame of the greatest size is whole");
}

static void invalid_headers(void) {
  static const struct {
    uint8_t header[FRAME_HEADER];
    const char *what;
  } cases[] = {
    { { 1, 0, 1, 0, 1, 0, 0, 0, FRAME_DATA, 0, 0, 0 }, "a length of 65,537" },
    { { 0xFF, 0xFF, 0xFF, 0xFF, 1, 0, 0, 0, FRAME_DATA, 0, 0, 0 }, "a length of 2^32-1" },
    { { 0, 0, 0, 0, 1, 0, 0, 0, FRAME_RESULT, 0, 0, 0 }, "a type that only guests send" },
    { { 0, 0, 0, 0, 1, 0, 0, 0, 99, 0, 0, 0 }, "an unknown type" },
    { { 0, 0, 0, 0, 1, 0, 0, 0, FRAME_DATA, 3, 0, 0 }, "an unknown stream" },
    { { 0, 0, 0, 0, 1, 0, 0, 0, FRAME_OPEN, 1, 0, 0 }, "a stream where there is none" },
    { { 0, 0, 0, 0, 0, 0, 0, 0, FRAME_OPEN, 0, 0, 0 }, "channel 0" },
    { { 0, 0, 0, 0, 1, 0, 0, 0, FRAME_DATA, 0, 0, 1 }, "reserved bits" },
    { { 3, 0, 0, 0, 1, 0, 0, 0, FRAME_CREDIT, 1, 0, 0 }, "a credit of 3 bytes" },
    { { 1, 0, 0, 0, 0, 0, 0, 0, FRAME_NOP, 0, 0, 0 }, "a NOP with a payload" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t stream[256];
    size_t length = put_sync(stream, 1);
    memcpy(stream + length, cases[i].header, FRAME_HEADER);
    length += FRAME_HEADER;
    length += put_frame(stream + length, FRAME_OPEN, 1, "not to be believed");
    size_t before_second = length;
    length += put_sync(stream + length, 2);
    length += put_frame(stream + length, FRAME_OPEN, 1, "good");
    fresh();
    feed(stream, before_second);
    bool silent = seen.frames == 0;
    feed(stream + before_second, length - before_second);
    check(silent && seen.syncs == 2 && seen.frames == 1 && seen.last.length == 4, cases[i].what);
  }
}

// A host that does not know where the guest is in the stream sends 66,000 zero bytes and a sync.
static void resync(void) {
  enum { ZEROS = 66000 };
  static uint8_t zeros[ZEROS];
  uint8_t stream[256], sync[SYNC_SIZE];
  put_sync(sync, 3);
  bool held = true;
  for (uint32_t promised = 0; promised <= FRAME_PAYLOAD_MAX; promised += promised < 40 ? 1 : 4095) {
    for (size_t cut = 0; cut <= FRAME_HEADER; cut++) {
      struct frame frame = { .type = FRAME_DATA, .channel = 1, .length = promised };
      size_t length = put_sync(stream, 1);
      frame_write_header(stream + length, &frame);
      fresh();
      feed(stream, length + cut);
      feed(zeros, ZEROS);
      feed(sync, SYNC_SIZE);
      held = held && seen.syncs == 2 && seen.nonce == 3;
    }
  }
  check(held, "66,000 zero bytes and a sync are found from the middle of any frame and any header");
  bool every_rest = true;
  for (size_t count = 0; count < 64; count++) {
    uint8_t start[SYNC_SIZE];
    put_sync(start, 1);
    fresh();
    feed(start, SYNC_SIZE);
    feed(zeros, count);
    feed(sync, SYNC_SIZE);
    every_rest = every_rest && seen.syncs == 2 && seen.frames == (int)(count / FRAME_HEADER);
  }
  check(every_rest, "a sync is found after any number of zero bytes");
}

int main(void) {
  splits();
  before_sync();
  greatest();
  invalid_headers();
  resync();
  return checks_end();
}
