// The commands that run.
#pragma once
#include "frame.h"
#include <poll.h>

// Starts what a FRAME_START asks for, and says so if that fails. Returns false when the server has gone or talks nonsense.
bool command_start(uint32_t id, const uint8_t *payload, size_t length);
// Kills a command with all processes of its group. Does nothing for one that has ended.
void command_kill(uint32_t id);
// Kills all that does not outlive the server.
void command_kill_all(void);
// Notes the ends of processes.
void command_reap(void);
// Fills in what is to be waited for; room for all is in `command_waits_room()`. Returns how many.
size_t command_waits(struct pollfd *waits);
size_t command_waits_room(void);
// How long to wait at most, in ms; -1: for ever.
int command_wait_ms(void);
// Passes on what the commands have printed, and tells of those that are over. Returns false when the server has gone.
bool command_look(const struct pollfd *waits, size_t count);
