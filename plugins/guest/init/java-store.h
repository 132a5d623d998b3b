// A bundle of certificates as Java reads one: a key store of the kind JKS, which every version of Java knows.
#ifndef JAVA_STORE_H
#define JAVA_STORE_H

#include <stddef.h>

// The password of the store that comes with Java. It protects nothing: the certificates can be read without it.
#define JAVA_STORE_PASSWORD "changeit"

// A store of all certificates of the text, in memory for the caller to free. An invalid certificate is left out, since
// Java would refuse the whole store. NULL with errno: without memory, or (EINVAL) without any certificate.
char *java_store(const char *text, size_t length, size_t *store_length);

#endif
