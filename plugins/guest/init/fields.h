// Reads and writes payloads that are sequences of tagged fields.
#ifndef FIELDS_H
#define FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct field {
  uint8_t tag;
  uint32_t length;
  uint8_t *bytes;
};

struct fields {
  struct field *items;
  size_t count;
};

// Parses in place: every value gets a NUL after it, so the payload is changed, must have one spare byte and must outlive `fields`.
// Returns 0, EINVAL for a malformed payload, or ENOMEM.
int fields_parse(uint8_t *payload, size_t length, struct fields *fields);
void fields_free(struct fields *fields);

const struct field *fields_find(const struct fields *fields, uint8_t tag);
// The first value of the tag, or `fallback`.
const char *fields_string(const struct fields *fields, uint8_t tag, const char *fallback);
uint64_t fields_number(const struct fields *fields, uint8_t tag, uint64_t fallback);
size_t fields_count(const struct fields *fields, uint8_t tag);
// All values of a tag as a NULL-terminated array to be freed by the caller; NULL without memory.
char **fields_list(const struct fields *fields, uint8_t tag);

// Writes into a buffer of fixed size; `overflow` says that a field did not fit and was left out completely.
struct writer {
  uint8_t *bytes;
  size_t capacity;
  size_t length;
  bool overflow;
};

void write_field(struct writer *writer, uint8_t tag, const void *bytes, size_t length);
void write_string(struct writer *writer, uint8_t tag, const char *string);
void write_number(struct writer *writer, uint8_t tag, uint64_t number);

#endif
