// The agent: the host's frames become channels, the program and its end; runs as first process or, in tests, on a socket.
#ifndef AGENT_H
#define AGENT_H

#include "cgroup.h"
#include "channel.h"
#include "connection.h"
#include "flush.h"
#include "init-system.h"
#include "listen.h"
#include "namespace.h"
#include "rehearsal.h"
#include "relay.h"
#include "report.h"
#include "sleep.h"
#include "volume-work.h"
#include "workload.h"

enum phase { PHASE_WAITING, PHASE_STARTING, PHASE_RUNNING, PHASE_ASLEEP, PHASE_EXITING };

// The steps from the program's end to the power switch.
enum end_step { END_NOT, END_TERM, END_KILL, END_DRAIN, END_FLUSH, END_DONE };

// How an image's own init is started.
struct init_place {
  bool (*make_root)(struct failure *failure); // in the child that becomes it
  void (*started)(void);
};

// What only the first process of a real guest does.
struct platform {
  // Opens a port that is a connection, or returns -1; bytes through it are acknowledged. NULL: the ports of agent_init stay open.
  int (*open_output)(void);
  int (*open_report)(void);
  bool is_init; // may signal every process there is
  // Makes the workload's root the root of this process.
  bool (*prepare)(const struct workload *workload, struct cgroups *cgroups, struct failure *failure);
  // Applies the identity of a `wake`; `now` is the merged identity: the previous one with what `wake` changes.
  bool (*identify)(const struct identity *now, const struct identity *wake, struct failure *failure);
  // Called when the report is written and the host was told.
  void (*finish)(void);
  const struct init_place *init;           // NULL: an init is a program like any other
  const struct rehearsal_place *rehearsal; // NULL: there is nothing to rehearse on
  // In a fork: mounts and unmounts a volume while the program runs. NULL: this machine has no volumes.
  bool (*mount)(const struct volume *volume, dev_t *place, struct failure *failure);
  bool (*unmount)(const struct volume *volume, dev_t *place, struct failure *failure);
  void (*warm_up)(void); // NULL: not needed
  void (*bind)(void);    // gives disks their driver ahead of the workload. NULL: there are none
};

struct agent {
  const struct platform *platform;
  int epoll;
  int report_port;
  struct watch children;
  struct connection connection;
  struct channel channels[CHANNEL_MAX];
  struct listen listen;
  struct relay relay;
  struct cgroups cgroups;

  enum phase phase;
  struct workload workload;
  bool has_workload;
  struct trust trust; // for the `run` to come
  pid_t program;
  enum init_system init;
  struct namespace namespace; // of the init
  struct watch start_status;
  struct failure start_failure;
  size_t start_failure_length;
  uint32_t run_channel; // the `run` that waits for its RESULT
  bool synced;          // a host has been there
  bool resumed;         // another host has come, perhaps with another VMM, and the program is to go on
  uint64_t oom_kills_before;

  struct rehearsal rehearsal;
  struct sleep sleep;
  struct flush flush;
  struct volume_work volume_work;
  uint64_t stop_kill_at;
  struct ending ending;
  enum end_step end_step;
  uint64_t end_deadline;
};

// The port descriptors are non-blocking; -1 for a missing report or output port.
bool agent_init(struct agent *agent, const struct platform *platform, int agent_port, int output_port, int report_port);
// Serves until the end.
void agent_run(struct agent *agent);

// A fork that works for the agent, with its disks, mounts and log. It holds none of the host's channels: what is at the other end of their
// pipes and connections would see no end while it lives, which may be long.
pid_t agent_fork(const struct agent *agent);

// Frames to the host.
void agent_send_fields(struct agent *agent, uint8_t type, uint32_t channel, const struct writer *writer);
void agent_send_failure(struct agent *agent, uint32_t channel, const struct failure *failure);

#endif
