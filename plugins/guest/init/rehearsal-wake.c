// The kind `rehearse` while asleep: a wake without its end, and a command beside the program, which stays frozen.
//
// The machine gets the identity that it is asked to rehearse with, as a `wake` gives it; the next `wake` gives it another one. Nobody but this program can tell, since
// nothing else runs. The command is this executable; it is born in no group that is frozen, and sees nothing of the program.
#include "rehearsal-wake.h"
#include "agent.h"
#include "exec.h"
#include <errno.h>
#include <string.h>

enum { LIMIT_MS = 5000 };

static size_t write_command(uint8_t *bytes, size_t size) {
  struct writer command = { .bytes = bytes, .capacity = size };
  write_string(&command, TAG_ARGV, "/proc/self/exe");
  write_string(&command, TAG_ARGV, "scene");
  // Elsewhere something may be mounted that a program serves, which is frozen.
  write_string(&command, TAG_CWD, "/");
  write_number(&command, TAG_TIMEOUT_MS, LIMIT_MS);
  return command.length;
}

bool rehearsal_wake(struct agent *agent, struct channel *channel, uint32_t id, const struct fields *asked, struct failure *failure) {
  uint8_t bytes[128];
  struct fields command;
  if (channel == NULL) return fail(failure, EAGAIN, NO_EXIT, "too many channels are open");
  if (!sleep_identify(agent, asked, failure)) return false;
  int error = fields_parse(bytes, write_command(bytes, sizeof bytes - 1), &command);
  if (error != 0) return fail(failure, error, NO_EXIT, "the rehearsal cannot be begun: %s", strerror(error));
  bool opened = exec_open(channel, id, &agent->connection, &command, &agent->workload, NULL, -1, failure);
  fields_free(&command);
  return opened;
}
