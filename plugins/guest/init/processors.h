// Whether another processor can do something meanwhile.
#ifndef PROCESSORS_H
#define PROCESSORS_H

#include <stdbool.h>

bool processors_are_several(void);

#endif
