// The kind `exec`: a command beside the program, with its own streams or terminal.
#ifndef EXEC_H
#define EXEC_H

#include "channel.h"
#include "failure.h"
#include "fields.h"
#include "namespace.h"
#include "workload.h"

// Starts it on a free channel; false with the reason when not even an attempt was possible.
bool exec_open(struct channel *channel, uint32_t id, struct connection *connection, const struct fields *fields,
               const struct workload *workload, const struct namespace *namespace, int cgroup, struct failure *failure);
void exec_resize(struct channel *channel, uint64_t rows, uint64_t cols);

#endif
