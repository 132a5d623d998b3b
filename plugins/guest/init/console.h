// The console of an image's own init: a terminal whose output is the program's.
#ifndef CONSOLE_H
#define CONSOLE_H

// `ours` reads what is printed, `theirs` is the terminal, which is mounted over /dev/console. 0 or errno. The output ends when every
// process has closed both.
int console_open(int *ours, int *theirs);

#endif
