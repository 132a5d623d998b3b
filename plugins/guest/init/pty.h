// The terminal of an exec with `tty`.
#ifndef PTY_H
#define PTY_H

#include <stdint.h>

// Opens a pair; the master is non-blocking. Returns 0 or errno.
int pty_open(int *master, int *slave, uint64_t rows, uint64_t cols);
void pty_resize(int master, uint64_t rows, uint64_t cols);
// The character for the end of input, or -1 without a terminal in line mode.
int pty_eof_character(int master);

#endif
