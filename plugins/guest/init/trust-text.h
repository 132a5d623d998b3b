// Texts of certificates: puts our block into a bundle, and removes it again.
#ifndef TRUST_TEXT_H
#define TRUST_TEXT_H

#include <stdbool.h>
#include <stddef.h>

// Around what berth-init writes. Tools that count certificates by their first line must not count these.
#define TRUST_BEGIN "# >>> berth egress authority: written at each start, and taken out when it is not wanted any more\n"
#define TRUST_END "# <<< berth egress authority\n"

// Whether the text is exactly one certificate.
bool pem_is_one(const char *text, size_t length);
// Whether the text contains a certificate.
bool pem_is_any(const char *text, size_t length);
// Writes the base64 of one certificate without white space, as JSON needs it; returns the number of bytes, which is less than the text's.
size_t pem_digits(const char *certificate, char *into);
// TRUST_BEGIN, the text, TRUST_END, in memory for the caller to free; NULL without memory.
char *trust_block(const char *text, size_t length, size_t *block_length);
// Removes our blocks from a bundle, in place, and each certificate, wherever it is and however its lines are broken, that is one of
// `known`, a list that NULL ends: a tool of the image may have written it there. Returns the new length.
size_t trust_strip(char *text, size_t length, const char *const *known);
// Whether the text ends with the block, on a line of its own.
bool trust_ends_with(const char *text, size_t length, const char *block, size_t block_length);

#endif
