// The kinds `mount` and `unmount`: volumes that come and go while the program runs, one at a time, each in a fork.
#include "volume-work.h"
#include "agent.h"
#include "disks.h"
#include "protocol.h"
#include "spawn.h"
#include "volumes.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct volume_word {
  bool done;
  dev_t place;
  struct failure failure;
};

static bool may_work(struct agent *agent, struct failure *failure) {
  struct volume_work *work = &agent->volume_work;
  if (agent->platform->mount == NULL) return fail(failure, EOPNOTSUPP, NO_EXIT, "this guest has no volumes");
  if (agent->phase == PHASE_WAITING || agent->phase == PHASE_STARTING) return fail(failure, EAGAIN, NO_EXIT, "the program has not been started yet");
  if (agent->phase == PHASE_EXITING) return fail(failure, ESHUTDOWN, NO_EXIT, "the instance is ending");
  if (agent->sleep.step != SLEEP_NOT) return fail(failure, EAGAIN, NO_EXIT, "the instance is asleep");
  if (work->worker != 0) return fail(failure, EALREADY, NO_EXIT, "another volume is being mounted or unmounted");
  if (work->word == NULL) {
    void *memory = mmap(NULL, sizeof *work->word, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return fail(failure, ENOMEM, NO_EXIT, "out of memory");
    work->word = memory;
  }
  return true;
}

static void answer(struct agent *agent, uint32_t channel, const struct failure *failure) {
  if (channel == 0) return;
  if (failure != NULL) agent_send_failure(agent, channel, failure);
  else agent_send_fields(agent, FRAME_RESULT, channel, &(struct writer){ 0 });
}

// In a fork, since the disk or its driver may be slow, and the agent must go on meanwhile.
static bool start(struct agent *agent, uint32_t channel, struct kept_volume *kept, bool unmounting, struct failure *failure) {
  struct volume_work *work = &agent->volume_work;
  const struct platform *platform = agent->platform;
  struct volume_word *word = work->word;
  *word = (struct volume_word){ .place = kept->place };
  pid_t pid = agent_fork(agent);
  if (pid < 0) return fail(failure, errno, NO_EXIT, "no worker can be started: %s", strerror(errno));
  if (pid == 0) {
    child_signals();
    bool good = unmounting ? platform->unmount(&kept->volume, &word->place, &word->failure) : platform->mount(&kept->volume, &word->place, &word->failure);
    word->done = good;
    _exit(0);
  }
  work->worker = pid;
  work->channel = channel;
  work->unmounting = unmounting;
  work->kept = kept;
  return true;
}

static bool begin_mount(struct agent *agent, uint32_t channel, const struct volume *volume, struct failure *failure) {
  struct kept_volume *kept = volumes_find(volume->device);
  if (kept != NULL) {
    // A second request, by a host that has not received the first answer.
    if (strcmp(kept->volume.path, volume->path) != 0) return fail(failure, EEXIST, NO_EXIT, "that disk is mounted at %s", kept->volume.path);
    answer(agent, channel, NULL);
    return true;
  }
  kept = volumes_reserve(volume);
  if (kept == NULL) return fail(failure, ENOSPC, NO_EXIT, "there are too many volumes");
  if (start(agent, channel, kept, false, failure)) return true;
  volumes_forget(kept);
  return false;
}

void volume_mount_asked(struct agent *agent, uint32_t channel, const struct fields *fields) {
  struct failure failure = { 0 };
  struct fields nested;
  struct volume volume;
  const struct field *field = fields_find(fields, TAG_MOUNT);
  bool good = may_work(agent, &failure) && (field != NULL || fail(&failure, EINVAL, NO_EXIT, "the request names no mount"));
  if (good && (good = volume_parse(field, &nested, &volume, &failure))) {
    good = begin_mount(agent, channel, &volume, &failure);
    fields_free(&nested);
  }
  failure.exit_code = NO_EXIT;
  if (!good) answer(agent, channel, &failure);
}

void volume_unmount_asked(struct agent *agent, uint32_t channel, const struct fields *fields) {
  struct failure failure = { 0 };
  const char *device = fields_string(fields, TAG_DEVICE, "");
  const char *overlay = fields_string(fields, TAG_OVERLAY_DEVICE, NULL);
  bool good = may_work(agent, &failure);
  if (good && !(disk_is_named(device) && (overlay == NULL || disk_is_named(overlay)))) good = fail(&failure, EINVAL, NO_EXIT, "the request names no disk");
  if (good) {
    struct kept_volume *kept = volumes_find(device);
    // A volume that is not mounted may still have its disk.
    if (kept == NULL) kept = volumes_reserve(&(struct volume){ .path = "/", .device = device, .readonly = true, .overlay_device = overlay });
    good = kept != NULL || fail(&failure, ENOSPC, NO_EXIT, "there are too many volumes");
    if (good) {
      volumes_let_go(kept);
      good = start(agent, channel, kept, true, &failure);
      if (!good) volumes_settle(kept, kept->place);
    }
  }
  if (!good) answer(agent, channel, &failure);
}

bool volume_child_ended(struct agent *agent, pid_t pid, int wait_status) {
  struct volume_work *work = &agent->volume_work;
  struct volume_word *word = work->word;
  if (pid <= 0 || pid != work->worker) return false;
  (void)wait_status;
  struct kept_volume *kept = work->kept;
  bool good = word->done;
  if (!good && word->failure.error == 0) fail(&word->failure, EIO, NO_EXIT, "the worker for volumes was killed");
  word->failure.message[sizeof word->failure.message - 1] = 0;
  word->failure.exit_code = NO_EXIT;
  if (good && !work->unmounting) volumes_settle(kept, word->place);
  // Nothing has changed: a volume that is still mounted is held again; one that was never mounted is forgotten.
  else if (!good && work->unmounting && word->place != 0) volumes_settle(kept, word->place);
  else volumes_forget(kept);
  work->worker = 0;
  work->kept = NULL;
  answer(agent, work->channel, good ? NULL : &word->failure);
  work->channel = 0;
  return true;
}
