// The inputs of fuzz.c: valid ones to begin with, and changes to them. The numbers are those of a seed, so that a run can be repeated.
#include "fuzz-inputs.h"
#include "fields.h"
#include "frame.h"
#include "protocol.h"
#include "trust-text.h"
#include <string.h>

enum { SEEDS_MAX = 160 };

static uint64_t state;

// xorshift64*
static uint64_t next_random(void) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545F4914F6CDD1D;
}

size_t random_below(size_t limit) {
  return limit == 0 ? 0 : (size_t)(next_random() % limit);
}

static struct seed seeds[SEEDS_MAX];
static size_t seed_count;

static void add_seed(uint8_t target, const void *bytes, size_t length) {
  struct seed *seed = &seeds[seed_count++];
  seed->bytes[0] = target;
  memcpy(seed->bytes + 1, bytes, length);
  seed->length = length + 1;
}

static void add_stream_seeds(const struct writer *fields) {
  uint8_t stream[512];
  memcpy(stream, frame_magic, MAGIC_SIZE);
  memset(stream + MAGIC_SIZE, 5, SYNC_SIZE - MAGIC_SIZE);
  for (uint8_t type = FRAME_NOP; type <= FRAME_CONTROL; type++) {
    struct frame frame = { .type = type, .channel = type != FRAME_NOP };
    size_t length = SYNC_SIZE;
    if (type == FRAME_OPEN || type == FRAME_CONTROL || type == FRAME_DATA) frame.length = (uint32_t)fields->length;
    if (type == FRAME_CREDIT) frame.length = 4;
    frame_write_header(stream + length, &frame);
    memcpy(stream + length + FRAME_HEADER, fields->bytes, frame.length);
    length += FRAME_HEADER + frame.length;
    add_seed(10, stream, length);
    add_seed(0, stream, length);
  }
}

void make_seeds(uint64_t seed) {
  state = seed * 2 + 1;
  uint8_t bytes[256], nested_bytes[128];
  struct writer writer = { .bytes = bytes, .capacity = sizeof bytes };
  struct writer nested = { .bytes = nested_bytes, .capacity = sizeof nested_bytes };
  static const char accounts[] = "app:grp\0root:x:0:0::/root:/bin/sh\napp:x:1:1::/home/app:\n\0root:x:0:\ngrp:x:5:app,root\n";
  write_string(&nested, TAG_PATH, "/data");
  write_string(&nested, TAG_DEVICE, "/dev/vdc");
  write_number(&nested, TAG_READONLY, 1);
  write_string(&nested, TAG_ADDRESS, "10.0.0.2/24");
  write_string(&nested, TAG_MAC, "02:00:00:00:00:01");
  write_string(&writer, TAG_KIND, "run");
  write_string(&writer, TAG_ARGV, "true");
  write_string(&writer, TAG_ENV, "A=1");
  write_field(&writer, TAG_MOUNT, nested.bytes, nested.length);
  write_number(&writer, TAG_AGENT, 1);
  add_seed(1, bytes, writer.length);
  add_seed(4, bytes, writer.length);
  add_seed(7, accounts, sizeof accounts - 1);
  add_stream_seeds(&writer);
  writer.length = 0;
  write_string(&writer, TAG_KIND, "exec");
  write_string(&writer, TAG_ARGV, "true");
  add_stream_seeds(&writer);
  writer.length = 0;
  write_string(&writer, TAG_KIND, "run");
  write_string(&writer, TAG_ARGV, "true");
  write_field(&writer, TAG_NETWORK, nested.bytes, nested.length);
  add_seed(4, bytes, writer.length);
  add_stream_seeds(&writer);
  writer.length = 0;
  write_string(&writer, TAG_KIND, "wake");
  write_string(&writer, TAG_HOSTNAME, "vm");
  write_field(&writer, TAG_NETWORK, nested.bytes, nested.length);
  write_number(&writer, TAG_NEW_MACHINE, 1);
  add_stream_seeds(&writer);
  writer.length = 0;
  write_string(&writer, TAG_KIND, "trust");
  write_string(&writer, TAG_CERTIFICATE, "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n");
  write_string(&writer, TAG_SUBJECT_HASH, "0123abcd");
  write_field(&writer, TAG_BUNDLE, nested.bytes, nested.length);
  add_stream_seeds(&writer);
  static const char bundle[] = "# roots\n-----BEGIN CERTIFICATE-----\nQg==\n-----END CERTIFICATE-----\n-----BEGIN CERTIFICATE-----\r\nQ\nQ==\n-----END CERTIFICATE-----\r\n" TRUST_BEGIN "x\n" TRUST_END "y";
  add_seed(6, bundle, sizeof bundle - 1);
  writer.length = 0;
  write_string(&writer, TAG_KIND, "run");
  write_string(&writer, TAG_ARGV, "true");
  write_number(&writer, TAG_TRUST, 3);
  add_seed(4, bytes, writer.length);
  add_stream_seeds(&writer);
  writer.length = 0;
  write_string(&writer, TAG_KIND, "rehearse");
  write_field(&writer, TAG_ENTROPY, nested.bytes, nested.length);
  add_stream_seeds(&writer);
  writer.length = 0;
  write_string(&writer, TAG_KIND, "bind");
  add_stream_seeds(&writer);
}

const struct seed *random_seed(void) {
  return &seeds[random_below(seed_count)];
}

size_t mutate(uint8_t *bytes, size_t length) {
  static const uint8_t telling[] = { 0, 1, 0x7F, 0x80, 0xFF, 0xB7, ':', '\n', ',', '/', '0', '9' };
  size_t at = random_below(length), other, run;
  switch (next_random() % 9) {
    case 0: if (length > 0) bytes[at] ^= (uint8_t)(1 << random_below(8)); break;
    case 1: if (length > 0) bytes[at] = (uint8_t)next_random(); break;
    case 2: if (length > 0) bytes[at] = telling[random_below(sizeof telling)]; break;
    case 3: length = at; break;
    case 4: // a piece of itself once more
      run = random_below(length - at + 1);
      if (length + run > INPUT_MAX) break;
      memmove(bytes + at + run, bytes + at, length - at);
      length += run;
      break;
    case 5: // a hole
      run = random_below(length - at + 1);
      memmove(bytes + at, bytes + at + run, length - at - run);
      length -= run;
      break;
    case 6: // another seed behind
      other = random_below(seed_count);
      if (length + seeds[other].length > INPUT_MAX) break;
      memcpy(bytes + length, seeds[other].bytes + 1, seeds[other].length - 1);
      length += seeds[other].length - 1;
      break;
    case 7: // a length field
      if (at + 4 > length) break;
      run = random_below(3) == 0 ? (size_t)next_random() : random_below(70000);
      memcpy(bytes + at, &run, 4);
      break;
    default: // zeros, as in a resynchronisation
      run = random_below(random_below(8) == 0 ? 66000 : 64);
      if (length + run > INPUT_MAX) break;
      memset(bytes + length, 0, run);
      length += run;
  }
  return length;
}
