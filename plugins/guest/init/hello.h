// The facts about the guest that HELLO contains.
#ifndef HELLO_H
#define HELLO_H

#include "agent.h"

void hello_write(const struct agent *agent, struct writer *hello);

#endif
