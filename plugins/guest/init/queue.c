// A byte queue of fixed capacity between a producer and a descriptor that may be slow.
#include "queue.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool queue_init(struct queue *queue, size_t capacity) {
  *queue = (struct queue){ .bytes = malloc(capacity), .capacity = capacity };
  return queue->bytes != NULL;
}

void queue_free(struct queue *queue) {
  free(queue->bytes);
  *queue = (struct queue){ 0 };
}

void queue_clear(struct queue *queue) {
  queue->start = queue->used = 0;
}

size_t queue_room(const struct queue *queue) {
  return queue->capacity - queue->used;
}

// The free bytes in one piece behind the newest byte.
static size_t tail(const struct queue *queue, size_t *length) {
  size_t end = queue->start + queue->used;
  if (end >= queue->capacity) {
    end -= queue->capacity;
    *length = queue->start - end;
  } else {
    *length = queue->capacity - end;
  }
  return end;
}

bool queue_push(struct queue *queue, const void *bytes, size_t length) {
  if (length > queue_room(queue)) return false;
  const uint8_t *from = bytes;
  while (length > 0) {
    size_t piece;
    size_t at = tail(queue, &piece);
    if (piece > length) piece = length;
    memcpy(queue->bytes + at, from, piece);
    queue->used += piece;
    from += piece;
    length -= piece;
  }
  return true;
}

ssize_t queue_write_behind(const struct queue *queue, size_t offset, int fd) {
  size_t from = (queue->start + offset) % queue->capacity;
  size_t piece = queue->capacity - from;
  if (piece > queue->used - offset) piece = queue->used - offset;
  return write(fd, queue->bytes + from, piece);
}

void queue_drop(struct queue *queue, size_t length) {
  queue->start = (queue->start + length) % queue->capacity;
  queue->used -= length;
  if (queue->used == 0) queue->start = 0;
}

ssize_t queue_write(struct queue *queue, int fd) {
  ssize_t written = queue_write_behind(queue, 0, fd);
  if (written > 0) queue_drop(queue, (size_t)written);
  return written;
}

ssize_t queue_read(struct queue *queue, int fd) {
  size_t piece;
  size_t at = tail(queue, &piece);
  ssize_t got = read(fd, queue->bytes + at, piece);
  if (got > 0) queue->used += (size_t)got;
  return got;
}
