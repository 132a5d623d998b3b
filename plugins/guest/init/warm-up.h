// A process that does nothing, started while the host thinks of its answer.
#ifndef WARM_UP_H
#define WARM_UP_H

// Early: opens this program, and counts the processors.
void warm_up_prepare(void);
// Starts it, unless there is only one processor. It ends by itself, and uses nothing that the guest could have replaced or frozen.
void warm_up(void);

#endif
