// Texts of certificates: puts our block into a bundle, and removes it again.
#include "trust-text.h"
#include <stdlib.h>
#include <string.h>

#define PEM_BEGIN "-----BEGIN CERTIFICATE-----"
#define PEM_END "-----END CERTIFICATE-----"

static char *find(const char *text, size_t length, const char *wanted) {
  return memmem(text, length, wanted, strlen(wanted));
}

static bool is_space(char character) {
  return character == '\n' || character == '\r' || character == ' ' || character == '\t';
}

bool pem_is_any(const char *text, size_t length) {
  return find(text, length, PEM_BEGIN) != NULL || find(text, length, "-----BEGIN TRUSTED CERTIFICATE-----") != NULL;
}

bool pem_is_one(const char *text, size_t length) {
  const size_t begin = sizeof PEM_BEGIN - 1, end = sizeof PEM_END - 1;
  while (length > 0 && is_space(text[length - 1])) length--;
  if (length < begin + end || memcmp(text, PEM_BEGIN, begin) != 0 || memcmp(text + length - end, PEM_END, end) != 0) return false;
  for (size_t i = begin; i < length - end; i++) {
    char c = text[i];
    bool base64 = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/' || c == '=';
    if (!base64 && !is_space(c)) return false;
  }
  return true;
}

size_t pem_digits(const char *certificate, char *into) {
  size_t length = 0;
  for (const char *at = certificate + sizeof PEM_BEGIN - 1; *at != 0 && *at != '-'; at++) {
    if (!is_space(*at)) into[length++] = *at;
  }
  return length;
}

char *trust_block(const char *text, size_t length, size_t *block_length) {
  bool open_line = length > 0 && text[length - 1] != '\n';
  char *block = malloc(sizeof TRUST_BEGIN + length + 1 + sizeof TRUST_END), *at = block;
  if (block == NULL) return NULL;
  at = mempcpy(at, TRUST_BEGIN, sizeof TRUST_BEGIN - 1);
  if (length > 0) at = mempcpy(at, text, length);
  if (open_line) *at++ = '\n';
  at = mempcpy(at, TRUST_END, sizeof TRUST_END);
  *block_length = (size_t)(at - block) - 1;
  return block;
}

bool trust_ends_with(const char *text, size_t length, const char *block, size_t block_length) {
  if (length < block_length || memcmp(text + length - block_length, block, block_length) != 0) return false;
  return length == block_length || text[length - block_length - 1] == '\n';
}

// The length of this certificate at the start of the text, white space in both ignored; 0: the text does not begin with it. Nothing is searched for, so
// that a hostile file cannot make this slow.
static size_t length_of_same(const char *text, size_t length, const char *certificate) {
  size_t i = 0;
  for (; *certificate != 0; certificate++) {
    if (is_space(*certificate)) continue;
    while (i < length && is_space(text[i])) i++;
    if (i == length || text[i++] != *certificate) return 0;
  }
  while (i < length && (text[i] == '\r' || text[i] == ' ')) i++;
  return i < length && text[i] == '\n' ? i + 1 : i;
}

// The length of the text to remove, at the beginning of a line.
static size_t length_of_ours(const char *text, size_t length, const char *const *known) {
  const size_t begin = sizeof TRUST_BEGIN - 1, end = sizeof TRUST_END - 1;
  if (length >= begin && memcmp(text, TRUST_BEGIN, begin) == 0) {
    const char *next = find(text + begin, length - begin, TRUST_BEGIN);
    const char *last = find(text + begin, (next == NULL ? length : (size_t)(next - text)) - begin, TRUST_END);
    // A block without its last line: what follows it is not ours.
    return last == NULL ? begin : (size_t)(last - text) + end;
  }
  if (length < sizeof PEM_BEGIN - 1 || memcmp(text, PEM_BEGIN, sizeof PEM_BEGIN - 1) != 0) return 0;
  size_t same = 0;
  for (; *known != NULL && same == 0; known++) same = length_of_same(text, length, *known);
  return same;
}

size_t trust_strip(char *text, size_t length, const char *const *known) {
  size_t kept = 0;
  for (size_t at = 0; at < length;) {
    size_t ours = length_of_ours(text + at, length - at, known);
    if (ours > 0) {
      at += ours;
      continue;
    }
    const char *newline = memchr(text + at, '\n', length - at);
    size_t line = newline == NULL ? length - at : (size_t)(newline - text) - at + 1;
    memmove(text + kept, text + at, line);
    kept += line;
    at += line;
  }
  return kept;
}
