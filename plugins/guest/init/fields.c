// Reads and writes payloads that are sequences of tagged fields.
#include "fields.h"
#include "protocol.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_HEADER = 5 };

enum value { VALUE_UNKNOWN, VALUE_STRING, VALUE_NUMBER, VALUE_BYTES };

static enum value value_of(uint8_t tag) {
  switch (tag) {
    case TAG_KIND: case TAG_PHASE: case TAG_ARGV: case TAG_ENV: case TAG_CWD: case TAG_USER: case TAG_HOSTNAME:
    case TAG_PATH: case TAG_TYPE: case TAG_LINK_TARGET: case TAG_BASENAME: case TAG_ERROR: case TAG_KERNEL:
    case TAG_BOOT_ID: case TAG_DEVICE: case TAG_OVERLAY_DEVICE: case TAG_MAC: case TAG_ADDRESS: case TAG_GATEWAY:
    case TAG_DNS: case TAG_CERTIFICATE: case TAG_SUBJECT_HASH:
      return VALUE_STRING;
    case TAG_ENTROPY: case TAG_MOUNT: case TAG_NETWORK: case TAG_BUNDLE:
      return VALUE_BYTES;
    case TAG_PORT:
      return VALUE_NUMBER;
    default:
      return tag >= TAG_KIND && tag <= TAG_TRUST ? VALUE_NUMBER : VALUE_UNKNOWN;
  }
}

static bool value_is_valid(const struct field *field) {
  switch (value_of(field->tag)) {
    case VALUE_STRING: return memchr(field->bytes, 0, field->length) == NULL;
    case VALUE_NUMBER: return field->length == 8;
    default: return true;
  }
}

static uint32_t field_length(const uint8_t *header) {
  return (uint32_t)header[1] | (uint32_t)header[2] << 8 | (uint32_t)header[3] << 16 | (uint32_t)header[4] << 24;
}

// Counts the fields, or returns false when one does not fit into the payload.
static bool measure(const uint8_t *payload, size_t length, size_t *count) {
  *count = 0;
  while (length > 0) {
    if (length < FIELD_HEADER) return false;
    uint32_t size = field_length(payload);
    if (size > length - FIELD_HEADER) return false;
    payload += FIELD_HEADER + size;
    length -= FIELD_HEADER + size;
    ++*count;
  }
  return true;
}

int fields_parse(uint8_t *payload, size_t length, struct fields *fields) {
  fields->items = NULL;
  fields->count = 0;
  size_t count;
  if (!measure(payload, length, &count)) return EINVAL;
  fields->items = calloc(count + 1, sizeof *fields->items);
  if (fields->items == NULL) return ENOMEM;
  fields->count = count;
  for (size_t i = 0; i < count; i++) {
    struct field *field = &fields->items[i];
    field->tag = payload[0];
    field->length = field_length(payload);
    field->bytes = payload + FIELD_HEADER;
    payload += FIELD_HEADER + field->length;
  }
  // Only now, since a terminator overwrites the tag of the next field.
  for (size_t i = 0; i < count; i++) {
    struct field *field = &fields->items[i];
    if (!value_is_valid(field)) {
      fields_free(fields);
      return EINVAL;
    }
    field->bytes[field->length] = 0;
  }
  return 0;
}

void fields_free(struct fields *fields) {
  free(fields->items);
  fields->items = NULL;
  fields->count = 0;
}

const struct field *fields_find(const struct fields *fields, uint8_t tag) {
  for (size_t i = 0; i < fields->count; i++) {
    if (fields->items[i].tag == tag) return &fields->items[i];
  }
  return NULL;
}

const char *fields_string(const struct fields *fields, uint8_t tag, const char *fallback) {
  const struct field *field = fields_find(fields, tag);
  return field == NULL ? fallback : (const char *)field->bytes;
}

uint64_t fields_number(const struct fields *fields, uint8_t tag, uint64_t fallback) {
  const struct field *field = fields_find(fields, tag);
  if (field == NULL || field->length != 8) return fallback;
  uint64_t number = 0;
  for (int i = 0; i < 8; i++) number |= (uint64_t)field->bytes[i] << (8 * i);
  return number;
}

size_t fields_count(const struct fields *fields, uint8_t tag) {
  size_t count = 0;
  for (size_t i = 0; i < fields->count; i++) count += fields->items[i].tag == tag;
  return count;
}

char **fields_list(const struct fields *fields, uint8_t tag) {
  char **list = calloc(fields_count(fields, tag) + 1, sizeof *list);
  if (list == NULL) return NULL;
  size_t used = 0;
  for (size_t i = 0; i < fields->count; i++) {
    if (fields->items[i].tag == tag) list[used++] = (char *)fields->items[i].bytes;
  }
  return list;
}

void write_field(struct writer *writer, uint8_t tag, const void *bytes, size_t length) {
  if (length > writer->capacity || writer->capacity - length < writer->length + FIELD_HEADER) {
    writer->overflow = true;
    return;
  }
  uint8_t *at = writer->bytes + writer->length;
  at[0] = tag;
  for (int i = 0; i < 4; i++) at[1 + i] = (uint8_t)(length >> (8 * i));
  if (length > 0) memcpy(at + FIELD_HEADER, bytes, length);
  writer->length += FIELD_HEADER + length;
}

void write_string(struct writer *writer, uint8_t tag, const char *string) {
  write_field(writer, tag, string, strlen(string));
}

void write_number(struct writer *writer, uint8_t tag, uint64_t number) {
  uint8_t bytes[8];
  for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(number >> (8 * i));
  write_field(writer, tag, bytes, sizeof bytes);
}
