// The facts that the guest introduces itself with.
#ifndef HELLO_H
#define HELLO_H

#include "agent.h"

void hello_write(const struct agent *agent, struct writer *hello);

#endif
