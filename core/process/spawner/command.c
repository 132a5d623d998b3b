// The table of the commands: passes on what they print, and tells how they ended.
#include "command.h"
#include "launch.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// A process that outlives the command may keep its pipes open; then the end of the command itself counts.
enum { PIPE_GRACE_MS = 1000, PIECE = 1 << 16 };

struct command {
  uint32_t id;
  bool stays; // when the server has gone
  pid_t pid; // 0: it has ended
  int status;
  uint64_t closes_at; // ms of the monotonic clock
  int out[2]; // -1: closed
};

static struct command *commands;
static size_t count, room;

static uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void close_end(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static struct command *add(void) {
  if (count == room) {
    size_t more = room == 0 ? 16 : room * 2;
    struct command *moved = realloc(commands, more * sizeof *moved);
    if (moved == NULL) return NULL;
    commands = moved;
    room = more;
  }
  return &commands[count++];
}

bool command_start(uint32_t id, const uint8_t *payload, size_t length) {
  struct plan plan;
  if (!plan_read(&plan, payload, length)) return false;
  struct command *command = add();
  int32_t pid = command == NULL ? -1 : launch(&plan, command->out), why = errno;
  bool stays = plan.log != NULL;
  plan_free(&plan);
  if (pid > 0) {
    command->id = id;
    command->pid = pid;
    command->stays = stays;
    return !stays || frame_send(id, FRAME_STARTED, &pid, sizeof pid);
  }
  if (command != NULL) count--;
  return frame_send(id, FRAME_FAILED, &why, sizeof why);
}

void command_kill(uint32_t id) {
  for (size_t i = 0; i < count; i++) {
    if (commands[i].id == id && commands[i].pid > 0) kill(-commands[i].pid, SIGKILL);
  }
}

void command_kill_all(void) {
  for (size_t i = 0; i < count; i++) {
    if (commands[i].pid > 0 && !commands[i].stays) kill(-commands[i].pid, SIGKILL);
  }
}

void command_reap(void) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (size_t i = 0; i < count; i++) {
      if (commands[i].pid != pid) continue;
      commands[i].pid = 0;
      commands[i].status = status;
      commands[i].closes_at = now_ms() + PIPE_GRACE_MS;
    }
  }
}

size_t command_waits_room(void) {
  return count * 2;
}

size_t command_waits(struct pollfd *waits) {
  for (size_t i = 0; i < count * 2; i++) waits[i] = (struct pollfd){ .fd = commands[i / 2].out[i % 2], .events = POLLIN };
  return count * 2;
}

static bool is_over(const struct command *command) {
  return command->pid == 0 && ((command->out[0] < 0 && command->out[1] < 0) || now_ms() >= command->closes_at);
}

int command_wait_ms(void) {
  uint64_t now = now_ms(), least = UINT64_MAX;
  for (size_t i = 0; i < count; i++) {
    if (commands[i].pid != 0) continue;
    if (is_over(&commands[i])) return 0;
    if (commands[i].closes_at < least) least = commands[i].closes_at;
  }
  return least == UINT64_MAX ? -1 : least <= now ? 0 : (int)(least - now);
}

static bool pass_on(struct command *command, int which) {
  static uint8_t piece[PIECE];
  ssize_t got = read(command->out[which], piece, sizeof piece);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got > 0) return frame_send(command->id, which == 0 ? FRAME_STDOUT : FRAME_STDERR, piece, (size_t)got);
  close_end(&command->out[which]);
  return true;
}

bool command_look(const struct pollfd *waits, size_t waited) {
  // Commands that were started since the wait are behind those that were waited for.
  for (size_t i = 0; i < waited; i++) {
    if (waits[i].fd >= 0 && waits[i].revents != 0 && !pass_on(&commands[i / 2], (int)(i % 2))) return false;
  }
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    struct command *command = &commands[i];
    if (!is_over(command)) {
      commands[kept++] = *command;
      continue;
    }
    close_end(&command->out[0]);
    close_end(&command->out[1]);
    int32_t status = command->status;
    if (!frame_send(command->id, FRAME_ENDED, &status, sizeof status)) return false;
  }
  count = kept;
  return true;
}
