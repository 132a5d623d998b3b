// The host's words in the root's /etc: hostname, hosts, resolv.conf, and an id for a machine whose image brings none.
#ifndef NAMES_H
#define NAMES_H

#include "identity.h"

// At the start, before any program of the image runs. What fails is logged: most programs run without it.
void names_write(const struct identity *identity);
// For a clone, while its program is frozen: only what the identity says anew, and without going where the program could have
// put a file system of its own.
void names_renew(const struct identity *now, const struct identity *wake);
// The text of /etc/hosts and /etc/resolv.conf; false when it does not fit.
bool hosts_format(const struct identity *identity, char *text, size_t size);
bool resolv_format(const struct network *network, char *text, size_t size);

#endif
