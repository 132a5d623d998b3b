// The process that is left behind: reads the output of VMM and guest, and appends it to their files.
#include "keep.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// A guest has one connection for each file, and for a moment a second one when the first breaks. A newer one ends the older of two: whoever holds connections idle keeps nobody out.
enum { OF_FILE = 2, SOURCES = 1 + OF_FILE * KEEPER_FILES, PIECE = 65536, RETRY_MS = 100, LAST_MS = 2000 };

struct source {
  int fd; // -1: free
  int file;
  bool acknowledged; // its sender is told how much was written; what cannot be written is kept, and no more is read meanwhile
  uint64_t turn; // the lower one is older
  uint64_t total;
  size_t have;
  size_t done;
  uint8_t bytes[PIECE];
};

static struct source sources[SOURCES];

static uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void end(struct source *source) {
  close(source->fd);
  source->fd = -1;
}

static void begin(struct source *source, int fd, int file, bool acknowledged) {
  static uint64_t turns;
  source->fd = fd;
  source->file = file;
  source->turn = turns++;
  source->acknowledged = acknowledged;
  source->total = source->have = source->done = 0;
}

static void acknowledge(struct source *source) {
  uint8_t bytes[8];
  for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(source->total >> (8 * i));
  // A sender that does not take an acknowledgement gets no further ones: after half of one it would misread the rest.
  if (send(source->fd, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof bytes) end(source);
}

// False while the file cannot be written: its disk is full.
static bool write_out(struct source *source, int file) {
  while (source->done < source->have) {
    ssize_t written = write(file, source->bytes + source->done, source->have - source->done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0 && source->acknowledged) return false;
    // A VMM that waits for its console stops, and its guest with it: the output is dropped instead.
    source->done = written <= 0 ? source->have : source->done + (size_t)written;
  }
  source->total += source->have;
  bool any = source->have > 0;
  source->have = source->done = 0;
  if (any && source->acknowledged) acknowledge(source);
  return true;
}

static void take(struct source *source) {
  ssize_t got = read(source->fd, source->bytes, sizeof source->bytes);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) end(source);
  else source->have = (size_t)got;
}

static void welcome(const struct keeper *keeper, int file) {
  int fd = accept4(keeper->files[file].listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return;
  struct source *place = NULL;
  for (int i = 1 + OF_FILE * file; i < 1 + OF_FILE * (file + 1); i++) {
    if (place == NULL || (place->fd >= 0 && (sources[i].fd < 0 || sources[i].turn < place->turn))) place = &sources[i];
  }
  // What of it is not written was not acknowledged either, so its sender keeps it.
  if (place->fd >= 0) end(place);
  begin(place, fd, file, true);
}

static void reopen(struct keeper *keeper) {
  int fd = accept4(keeper->control, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) return;
  struct timeval limit = { .tv_usec = 200000 };
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  uint8_t answer = 0;
  if (recv(fd, &answer, 1, 0) == 1) {
    answer = 0;
    for (int i = 0; i < keeper->file_count; i++) {
      int error = file_reopen(&keeper->files[i]);
      if (error != 0) answer = (uint8_t)error;
    }
    send(fd, &answer, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  close(fd);
}

static void turn(struct keeper *keeper, bool blocked) {
  struct pollfd polled[1 + KEEPER_FILES + SOURCES];
  polled[0] = (struct pollfd){ .fd = keeper->control, .events = POLLIN };
  for (int i = 0; i < KEEPER_FILES; i++) {
    int listener = i < keeper->file_count ? keeper->files[i].listener : 0;
    polled[1 + i] = (struct pollfd){ .fd = listener > 0 ? listener : -1, .events = POLLIN };
  }
  for (int i = 0; i < SOURCES; i++) {
    polled[1 + KEEPER_FILES + i] = (struct pollfd){ .fd = sources[i].have > 0 ? -1 : sources[i].fd, .events = POLLIN };
  }
  bool last = sources[0].fd < 0;
  if (poll(polled, 1 + KEEPER_FILES + SOURCES, blocked || last ? RETRY_MS : -1) <= 0) return;
  for (int i = 0; i < SOURCES; i++) {
    if (polled[1 + KEEPER_FILES + i].revents != 0) take(&sources[i]);
  }
  for (int i = 0; i < keeper->file_count; i++) {
    if (polled[1 + i].revents != 0) welcome(keeper, i);
  }
  if (polled[0].revents != 0) reopen(keeper);
}

static bool any_left(void) {
  for (int i = 0; i < SOURCES; i++) {
    if (sources[i].fd >= 0 || sources[i].have > 0) return true;
  }
  return false;
}

// All other inherited descriptors belong to the VMM: a lock would outlive it here.
static void let_go(const struct keeper *keeper) {
  int kept[2 + 2 * KEEPER_FILES], count = 0;
  kept[count++] = keeper->control;
  kept[count++] = keeper->console;
  for (int i = 0; i < keeper->file_count; i++) {
    kept[count++] = keeper->files[i].fd;
    kept[count++] = keeper->files[i].listener;
  }
  int limit = (int)sysconf(_SC_OPEN_MAX);
  for (int fd = 0; fd < (limit < 4096 ? limit : 4096); fd++) {
    bool keeps = false;
    for (int i = 0; i < count; i++) keeps = keeps || kept[i] == fd;
    if (!keeps) close(fd);
  }
}

int keep(struct keeper *keeper) {
  signal(SIGPIPE, SIG_IGN);
  let_go(keeper);
  for (int i = 0; i < SOURCES; i++) sources[i].fd = -1;
  fcntl(keeper->console, F_SETFL, O_NONBLOCK);
  begin(&sources[0], keeper->console, 0, false);
  uint64_t deadline = 0;
  bool blocked = false;
  while (any_left()) {
    turn(keeper, blocked);
    blocked = false;
    for (int i = 0; i < SOURCES; i++) {
      if (sources[i].have > 0 && !write_out(&sources[i], keeper->files[sources[i].file].fd)) blocked = true;
    }
    if (sources[0].fd >= 0) continue;
    // The VMM has ended, and so have its connections, once what is still in them is read.
    if (deadline == 0) deadline = now_ms() + LAST_MS;
    if (now_ms() >= deadline) return 1;
  }
  return 0;
}
