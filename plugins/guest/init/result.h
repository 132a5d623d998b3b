// What a channel's RESULT says about its child.
#ifndef RESULT_H
#define RESULT_H

#include "channel.h"
#include "fields.h"

void result_of_command(const struct channel *channel, struct writer *result);
void result_of_files(const struct channel *channel, struct writer *result);
// 128+n for a signal, else the code. `signal` is 0 without one.
int exit_code_of(int wait_status, int *signal);

#endif
