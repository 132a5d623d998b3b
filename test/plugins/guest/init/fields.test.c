// Fields: what is written is read again, and nothing malformed passes.
#include "check.h"
#include "fields.h"
#include "protocol.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Parses a copy with exactly the one spare byte that is promised.
static int parse(const uint8_t *bytes, size_t length, struct fields *fields, uint8_t **copy) {
  *copy = malloc(length + 1);
  memcpy(*copy, bytes, length);
  return fields_parse(*copy, length, fields);
}

static void round_trip(void) {
  uint8_t bytes[256], *copy;
  struct writer writer = { .bytes = bytes, .capacity = sizeof bytes };
  struct fields fields;
  write_string(&writer, TAG_KIND, "exec");
  write_string(&writer, TAG_ARGV, "a");
  write_string(&writer, TAG_ARGV, "");
  write_string(&writer, TAG_ARGV, "c d");
  write_number(&writer, TAG_TIMEOUT_MS, UINT64_MAX);
  write_field(&writer, TAG_ENTROPY, "\0\1\2", 3);
  write_field(&writer, 200, "future", 6);
  check(parse(bytes, writer.length, &fields, &copy) == 0, "what was written is parsed");
  char **argv = fields_list(&fields, TAG_ARGV);
  check(strcmp(fields_string(&fields, TAG_KIND, ""), "exec") == 0, "a string is read");
  check(strcmp(argv[0], "a") == 0 && argv[1][0] == 0 && strcmp(argv[2], "c d") == 0 && argv[3] == NULL, "a list keeps its order and its empty items");
  check(fields_number(&fields, TAG_TIMEOUT_MS, 1) == UINT64_MAX, "a number is read whole");
  check(fields_number(&fields, TAG_ROWS, 24) == 24 && strcmp(fields_string(&fields, TAG_CWD, "/"), "/") == 0, "an absent field has its default");
  check(fields_find(&fields, TAG_ENTROPY)->length == 3, "bytes may be zero");
  free(argv);
  fields_free(&fields);
  free(copy);
}

static void refuses(const uint8_t *bytes, size_t length, const char *what) {
  struct fields fields;
  uint8_t *copy;
  check(parse(bytes, length, &fields, &copy) == EINVAL && fields.items == NULL, what);
  free(copy);
}

static void malformed(void) {
  refuses((uint8_t[]){ TAG_KIND, 0, 0, 0 }, 4, "a header that breaks off");
  refuses((uint8_t[]){ TAG_KIND, 5, 0, 0, 0, 'a' }, 6, "a value that breaks off");
  refuses((uint8_t[]){ TAG_KIND, 0xFF, 0xFF, 0xFF, 0xFF, 'a' }, 6, "a length of 2^32-1");
  refuses((uint8_t[]){ TAG_KIND, 2, 0, 0, 0, 'a', 0 }, 7, "a NUL in a string");
  refuses((uint8_t[]){ TAG_ROWS, 4, 0, 0, 0, 1, 0, 0, 0 }, 9, "a number of four bytes");
  struct fields fields;
  uint8_t *copy;
  check(parse((uint8_t[]){ 0 }, 0, &fields, &copy) == 0 && fields.count == 0, "no fields at all are fine");
  fields_free(&fields);
  free(copy);
}

static void overflow(void) {
  uint8_t bytes[20];
  struct writer writer = { .bytes = bytes, .capacity = sizeof bytes };
  write_string(&writer, TAG_PATH, "0123456789");
  write_string(&writer, TAG_ERROR, "x");
  check(writer.length == 15 && writer.overflow, "a field that does not fit is left out whole");
  write_string(&writer, TAG_ERROR, "");
  check(writer.length == 20, "one that fits exactly is written");
}

int main(void) {
  round_trip();
  malformed();
  overflow();
  return checks_end();
}
