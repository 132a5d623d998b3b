// Gives this machine its own time, randomness, name and address: at a cold start, and for each clone of a memory image.
#ifndef IDENTITY_H
#define IDENTITY_H

#include "workload.h"

void identity_apply(const struct identity *identity);

#endif
