// Writes to the kernel's log; problems reach the host through the console, in the VMM's log.
#ifndef LOG_H
#define LOG_H

void log_open(void);
void log_problem(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Information that stays in the guest.
void log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
