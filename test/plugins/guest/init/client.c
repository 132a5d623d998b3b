// The host's side of the protocol for the C tests.
#include "client.h"
#include "agent.h"
#include "clock.h"
#include "spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static bool prepare(const struct workload *workload, struct cgroups *cgroups, struct failure *failure) {
  (void)failure;
  if (client_groups != NULL) cgroups->root = open(client_groups, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (client_groups != NULL && workload->trust != NULL) {
    char path[4096];
    snprintf(path, sizeof path, "%s/trusted", client_groups);
    FILE *file = fopen(path, "w");
    if (file != NULL) fprintf(file, "%s %s%s", workload->trust->hash, workload->trust->certificate, workload->trust->bundle);
    if (file != NULL) fclose(file);
  }
  return true;
}

// Nothing of this machine may change.
static bool identify(const struct identity *now, const struct identity *wake, struct failure *failure) {
  if (strcmp(wake->hostname, "refused") == 0) return fail(failure, EIO, 255, "it cannot be applied");
  char path[4096];
  snprintf(path, sizeof path, "%s/woken", client_groups == NULL ? "/nowhere" : client_groups);
  FILE *file = fopen(path, "w");
  if (file == NULL) return true;
  fprintf(file, "%s %s %s %llu %zu %d", now->hostname, now->network.address, now->network.dns[0], (unsigned long long)wake->realtime_ns, wake->entropy_length, wake->new_machine);
  fclose(file);
  return true;
}

static void finish(void) {
}

static struct agent agent;
const char *client_groups;
const struct rehearsal_place *client_place;
const struct init_place *client_init;
bool (*client_mount)(const struct volume *volume, dev_t *place, struct failure *failure);
bool (*client_unmount)(const struct volume *volume, dev_t *place, struct failure *failure);

static void serve(int fd, int output, int report) {
  // Orphans come to it, as they come to the first process.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const struct platform platform = { .is_init = false, .prepare = prepare, .identify = identify, .finish = finish, .rehearsal = client_place, .init = client_init,
                                   .mount = client_mount, .unmount = client_unmount };
  proc_folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (!agent_init(&agent, &platform, fd, output, report)) _exit(99);
  if (client_init != NULL && (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)) _exit(98);
  agent_run(&agent);
  // The sanitizers look for themselves there when the process ends, and it was the init's.
  if (client_init != NULL) mount("proc", "/proc", "proc", 0, NULL);
  exit(0);
}

void client_start(struct client *client) {
  int pair[2], output[2], report[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 || pipe2(output, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0) abort();
  *client = (struct client){ .fd = pair[0], .output = output[0], .report = report[0], .next_channel = 1 };
  fflush(stdout);
  client->agent = fork();
  if (client->agent == 0) {
    close(pair[0]);
    close(output[0]);
    close(report[0]);
    fcntl(pair[1], F_SETFL, O_NONBLOCK);
    fcntl(output[1], F_SETFL, O_NONBLOCK);
    fcntl(report[1], F_SETFL, O_NONBLOCK);
    serve(pair[1], output[1], report[1]);
  }
  close(pair[1]);
  close(output[1]);
  close(report[1]);
}

void client_hang_up(struct client *client) {
  if (client->fd >= 0) close(client->fd);
  client->fd = -1;
}

bool client_join(struct client *client, int limit_ms) {
  uint64_t end = clock_ms() + (uint64_t)limit_ms;
  int status;
  while (waitpid(client->agent, &status, WNOHANG) == 0) {
    if (clock_ms() > end) return false;
    usleep(5000); // the test process has no loop of its own that SIGCHLD could wake
  }
  client->agent = 0;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void client_end(struct client *client) {
  client_hang_up(client);
  if (client->agent > 0) {
    kill(client->agent, SIGKILL);
    waitpid(client->agent, NULL, 0);
  }
  close(client->output);
  close(client->report);
}

static void send_all(struct client *client, const void *bytes, size_t length) {
  const char *from = bytes;
  while (length > 0) {
    ssize_t sent = send(client->fd, from, length, MSG_NOSIGNAL);
    if (sent <= 0) return;
    from += sent;
    length -= (size_t)sent;
  }
}

void client_send(struct client *client, uint8_t type, uint32_t channel, uint8_t stream, const void *payload, size_t length) {
  uint8_t header[FRAME_HEADER];
  struct frame frame = { .type = type, .stream = stream, .channel = channel, .length = (uint32_t)length };
  frame_write_header(header, &frame);
  send_all(client, header, sizeof header);
  send_all(client, payload, length);
}

// For the rest of a frame whose first byte is here.
enum { FRAME_MS = 10000 };

static bool receive(struct client *client, void *into, size_t length, uint64_t end) {
  char *at = into;
  while (length > 0) {
    uint64_t now = clock_ms();
    struct pollfd wait = { .fd = client->fd, .events = POLLIN };
    if (now >= end || poll(&wait, 1, (int)(end - now)) <= 0) return false;
    ssize_t got = recv(client->fd, at, length, 0);
    if (got <= 0) return false;
    at += got;
    length -= (size_t)got;
  }
  return true;
}

// The limit is for the beginning of a frame: whoever gave up in the middle of one would take its rest for the next.
static bool receive_frame(struct client *client, struct frame *frame, uint8_t *payload, uint64_t limit) {
  uint8_t head[FRAME_HEADER];
  if (!receive(client, head, 1, limit)) return false;
  uint64_t end = clock_ms() + FRAME_MS;
  if (!receive(client, head + 1, sizeof head - 1, end)) return false;
  memcpy(&frame->length, head, 4);
  memcpy(&frame->channel, head + 4, 4);
  frame->type = head[8];
  frame->stream = head[9];
  frame->payload = payload;
  if (frame->length > FRAME_PAYLOAD_MAX || !receive(client, payload, frame->length, end)) return false;
  if (frame->type != FRAME_EVENT || frame->length >= sizeof client->last_event) return true;
  memcpy(client->last_event, payload, frame->length);
  client->last_event_length = frame->length;
  if (memmem(payload, frame->length, "started", 7) != NULL) client->started = true;
  if (memmem(payload, frame->length, "exited", 6) != NULL) client->exited = true;
  return true;
}

const char *client_sync(struct client *client) {
  static uint8_t payload[FRAME_PAYLOAD_MAX + 1];
  static char phase[32];
  static uint8_t nonce;
  uint8_t sync[SYNC_SIZE], seen[SYNC_SIZE] = { 0 };
  memcpy(sync, frame_magic, MAGIC_SIZE);
  memset(sync + MAGIC_SIZE, ++nonce, SYNC_SIZE - MAGIC_SIZE);
  send_all(client, sync, sizeof sync);
  uint64_t end = clock_ms() + 5000;
  do {
    memmove(seen, seen + 1, SYNC_SIZE - 1);
    if (!receive(client, seen + SYNC_SIZE - 1, 1, end)) return NULL;
  } while (memcmp(seen, sync, SYNC_SIZE) != 0);
  struct frame frame;
  struct fields fields;
  if (!receive_frame(client, &frame, payload, end) || frame.type != FRAME_HELLO) return NULL;
  if (fields_parse(payload, frame.length, &fields) != 0) return NULL;
  snprintf(phase, sizeof phase, "%s", fields_string(&fields, TAG_PHASE, ""));
  bool version = fields_number(&fields, TAG_PROTOCOL, 0) == PROTOCOL_VERSION && fields_number(&fields, TAG_MEMORY_TOTAL, 0) > 0;
  fields_free(&fields);
  return version ? phase : NULL;
}

static bool is_number(int tag) {
  return (tag >= TAG_TTY && tag <= TAG_SIGNAL) || (tag >= TAG_MODE && tag <= TAG_SIZE) || tag == TAG_PROTOCOL ||
         tag == TAG_AGENT || tag == TAG_GRACE_MS || tag == TAG_FOLLOW ||
         tag == TAG_REALTIME_NS || tag == TAG_SYNC || tag == TAG_NEW_MACHINE || tag == TAG_TRUST || tag == TAG_PORT;
}

static void send_list(struct client *client, uint8_t type, uint32_t channel, const char *kind, va_list list) {
  static uint8_t bytes[FRAME_PAYLOAD_MAX];
  struct writer writer = { .bytes = bytes, .capacity = sizeof bytes };
  write_string(&writer, TAG_KIND, kind);
  for (int tag; (tag = va_arg(list, int)) != 0;) {
    if (is_number(tag)) write_number(&writer, (uint8_t)tag, (uint64_t)va_arg(list, long));
    else write_string(&writer, (uint8_t)tag, va_arg(list, const char *));
  }
  client_send(client, type, channel, 0, writer.bytes, writer.length);
}

uint32_t client_open(struct client *client, const char *kind, ...) {
  uint32_t channel = client->next_channel++;
  va_list list;
  va_start(list, kind);
  send_list(client, FRAME_OPEN, channel, kind, list);
  va_end(list);
  return channel;
}

void client_control(struct client *client, uint32_t channel, const char *operation, ...) {
  va_list list;
  va_start(list, operation);
  send_list(client, FRAME_CONTROL, channel, operation, list);
  va_end(list);
}

void client_credit(struct client *client, uint32_t channel, uint8_t stream, uint32_t bytes) {
  client_send(client, FRAME_CREDIT, channel, stream, &bytes, sizeof bytes);
}

static void add(struct answer *answer, const struct frame *frame) {
  if (frame->stream > STREAM_ERROR || answer->length[frame->stream] + frame->length > CLIENT_OUTPUT_MAX) abort();
  char **bytes = &answer->bytes[frame->stream];
  *bytes = realloc(*bytes, answer->length[frame->stream] + frame->length + 1);
  memcpy(*bytes + answer->length[frame->stream], frame->payload, frame->length);
  answer->length[frame->stream] += frame->length;
  (*bytes)[answer->length[frame->stream]] = 0;
}

static void take(struct client *client, const struct frame *frame, struct answer *answer, bool credit) {
  if (frame->type == FRAME_DATA) {
    add(answer, frame);
    if (credit) client_credit(client, frame->channel, frame->stream, frame->length);
  } else if (frame->type == FRAME_EOF) answer->eof[frame->stream] = true;
  else if (frame->type == FRAME_CREDIT) {
    uint32_t given;
    memcpy(&given, frame->payload, sizeof given);
    answer->credited += given;
  } else if (frame->type == FRAME_RESULT) {
    answer->ended = fields_parse(answer->payload, frame->length, &answer->fields) == 0;
  }
}

static void begin(struct answer *answer) {
  memset(answer, 0, sizeof *answer);
  for (int i = 0; i < 3; i++) answer->bytes[i] = calloc(1, 1);
}

void client_answer(struct client *client, uint32_t channel, struct answer *answer, bool credit, int limit_ms) {
  begin(answer);
  uint64_t end = clock_ms() + (uint64_t)limit_ms;
  struct frame frame;
  while (!answer->ended && receive_frame(client, &frame, answer->payload, end)) {
    if (frame.channel == channel) take(client, &frame, answer, credit);
  }
}

int client_frame(struct client *client, uint32_t channel, struct answer *answer, int limit_ms) {
  begin(answer);
  uint64_t end = clock_ms() + (uint64_t)limit_ms;
  struct frame frame;
  while (receive_frame(client, &frame, answer->payload, end)) {
    if (frame.channel != channel) continue;
    take(client, &frame, answer, false);
    return frame.type;
  }
  return -1;
}

bool client_until(struct client *client, uint32_t channel, struct answer *answer, const char *text, size_t length, bool credit) {
  begin(answer);
  uint64_t end = clock_ms() + 10000;
  struct frame frame;
  while (!answer->ended && (answer->length[1] < length || strstr(answer->bytes[1], text) == NULL)) {
    if (!receive_frame(client, &frame, answer->payload, end)) return false;
    if (frame.channel == channel) take(client, &frame, answer, credit);
  }
  return !answer->ended;
}

bool client_wait_for(bool (*condition)(void)) {
  for (int i = 0; i < 500; i++) {
    if (condition()) return true;
    usleep(10000);
  }
  return condition();
}

void answer_free(struct answer *answer) {
  fields_free(&answer->fields);
  for (int i = 0; i < 3; i++) free(answer->bytes[i]);
}

void client_exec(struct client *client, struct answer *answer, const char *input, const char *script) {
  uint32_t channel = client_open(client, "exec", TAG_ARGV, "sh", TAG_ARGV, "-c", TAG_ARGV, script, 0);
  if (input[0] != 0) client_send(client, FRAME_DATA, channel, STREAM_IN, input, strlen(input));
  client_send(client, FRAME_EOF, channel, STREAM_IN, NULL, 0);
  client_answer(client, channel, answer, true, 10000);
}

bool client_run_sleeper(struct client *client) {
  struct answer answer;
  uint32_t channel = client_open(client, "run", TAG_ARGV, "sleep", TAG_ARGV, "1000", TAG_ENV, "FROM=image", TAG_ENV, "PATH=/usr/bin:/bin",
                                 TAG_CWD, "/", TAG_HOSTNAME, "vm", 0);
  client_answer(client, channel, &answer, true, 5000);
  bool good = answer.ended && answer.fields.count == 0;
  answer_free(&answer);
  return good;
}

bool client_event(struct client *client, const char *name, struct fields *fields, int limit_ms) {
  static uint8_t payload[FRAME_PAYLOAD_MAX + 1];
  uint64_t end = clock_ms() + (uint64_t)limit_ms;
  struct frame frame;
  const bool *seen = strcmp(name, "started") == 0 ? &client->started : &client->exited;
  while (!*seen) {
    if (!receive_frame(client, &frame, payload, end)) return false;
  }
  return fields_parse(client->last_event, client->last_event_length, fields) == 0;
}

size_t client_read_all(int fd, char *text, size_t size) {
  size_t have = 0;
  while (have < size - 1) {
    ssize_t got = read(fd, text + have, size - 1 - have);
    if (got <= 0) break;
    have += (size_t)got;
  }
  text[have] = 0;
  return have;
}
