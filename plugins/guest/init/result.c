// What a channel's RESULT says about its child.
#include "result.h"
#include "failure.h"
#include "protocol.h"
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

int exit_code_of(int wait_status, int *signal) {
  *signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
  return *signal != 0 ? 128 + *signal : WEXITSTATUS(wait_status);
}

void result_of_command(const struct channel *channel, struct writer *result) {
  struct failure failure;
  if (channel->status_length == sizeof failure) {
    memcpy(&failure, channel->status_bytes, sizeof failure);
    failure.message[sizeof failure.message - 1] = 0;
    write_number(result, TAG_EXIT_CODE, (uint32_t)failure.exit_code);
    write_number(result, TAG_SIGNAL, 0);
    write_string(result, TAG_ERROR, failure.message);
    write_number(result, TAG_ERRNO, (uint32_t)failure.error);
    return;
  }
  int signal, exit_code = exit_code_of(channel->wait_status, &signal);
  write_number(result, TAG_EXIT_CODE, channel->timed_out ? EXIT_TIMED_OUT : (uint64_t)exit_code);
  write_number(result, TAG_SIGNAL, (uint64_t)signal);
}

void result_of_files(const struct channel *channel, struct writer *result) {
  bool succeeded = WIFEXITED(channel->wait_status) && WEXITSTATUS(channel->wait_status) == 0;
  if (succeeded && !channel->cancelled) {
    memcpy(result->bytes, channel->status_bytes, channel->status_length);
    result->length = channel->status_length;
    return;
  }
  write_string(result, TAG_ERROR, channel->cancelled ? "cancelled" : "the guest's file worker was killed");
  write_number(result, TAG_ERRNO, channel->cancelled ? ECANCELED : EIO);
}
