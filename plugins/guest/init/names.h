// Writes the host's values into the root's /etc: hostname, hosts, resolv.conf, and a machine id when the image has none.
#ifndef NAMES_H
#define NAMES_H

#include "identity.h"

// At the start, before any program of the image runs. Failures are logged: most programs run without these files.
void names_write(const struct identity *identity);
// For a clone, while its program is frozen: writes only the fields that `wake` has, and enters no file system that the program
// could have mounted.
void names_renew(const struct identity *now, const struct identity *wake);
// The text of /etc/hosts and /etc/resolv.conf; false when it does not fit.
bool hosts_format(const struct identity *identity, char *text, size_t size);
bool resolv_format(const struct network *network, char *text, size_t size);

#endif
