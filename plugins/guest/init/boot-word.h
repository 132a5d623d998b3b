// Words for this program that the VMM's driver has put on the kernel's command line.
#ifndef BOOT_WORD_H
#define BOOT_WORD_H

#include <stdbool.h>

// Whether the command line has exactly this word.
bool boot_word(const char *word);

#endif
