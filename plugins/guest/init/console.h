// The console of an image's own init: a terminal whose output is the program's.
#ifndef CONSOLE_H
#define CONSOLE_H

// `ours` gives what is printed on it, `theirs` is the terminal, which lies over /dev/console. 0 or errno. The output ends when both
// have been closed by all.
int console_open(int *ours, int *theirs);

#endif
