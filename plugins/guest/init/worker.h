// Runs put, get and stat in a fork of this program: a hanging file system or a hostile race affects the fork and not the agent.
#ifndef WORKER_H
#define WORKER_H

#include "channel.h"
#include "failure.h"
#include "fields.h"

enum worker_kind { WORKER_PUT, WORKER_GET, WORKER_STAT };

bool worker_open(struct channel *channel, uint32_t id, struct connection *connection, enum worker_kind kind,
                 const struct fields *fields, struct failure *failure);

#endif
