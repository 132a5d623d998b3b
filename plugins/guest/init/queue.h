// A byte queue of fixed capacity between a producer and a descriptor that may be slow.
#ifndef QUEUE_H
#define QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct queue {
  uint8_t *bytes;
  size_t capacity;
  size_t start;
  size_t used;
};

bool queue_init(struct queue *queue, size_t capacity);
void queue_free(struct queue *queue);
void queue_clear(struct queue *queue);
size_t queue_room(const struct queue *queue);
// All or nothing.
bool queue_push(struct queue *queue, const void *bytes, size_t length);
// One write(2) of the oldest bytes; returns what it returned.
ssize_t queue_write(struct queue *queue, int fd);
// The same for the bytes behind the first `offset`; all of them stay queued until queue_drop removes them.
ssize_t queue_write_behind(const struct queue *queue, size_t offset, int fd);
// Forgets the oldest bytes.
void queue_drop(struct queue *queue, size_t length);
// One read(2) into the free space; returns what it returned.
ssize_t queue_read(struct queue *queue, int fd);

#endif
