// The numbers of the agent protocol, as PROTOCOL.md gives them.
#ifndef PROTOCOL_H
#define PROTOCOL_H

enum { PROTOCOL_VERSION = 1 };

enum {
  MAGIC_SIZE = 8,
  SYNC_SIZE = 24,
  FRAME_HEADER = 12,
  FRAME_PAYLOAD_MAX = 65536,
  STREAM_CREDIT = 262144,
};

enum frame_type {
  FRAME_NOP = 0,
  FRAME_HELLO = 1,
  FRAME_OPEN = 2,
  FRAME_DATA = 3,
  FRAME_EOF = 4,
  FRAME_CREDIT = 5,
  FRAME_CONTROL = 6,
  FRAME_RESULT = 7,
  FRAME_EVENT = 8,
};

enum stream { STREAM_IN = 0, STREAM_OUT = 1, STREAM_ERROR = 2 };

enum tag {
  TAG_KIND = 1,
  TAG_PROTOCOL = 2,
  TAG_PHASE = 3,
  TAG_ARGV = 4,
  TAG_ENV = 5,
  TAG_CWD = 6,
  TAG_USER = 7,
  TAG_TTY = 8,
  TAG_ROWS = 9,
  TAG_COLS = 10,
  TAG_TIMEOUT_MS = 11,
  TAG_EXIT_CODE = 12,
  TAG_SIGNAL = 13,
  TAG_HOSTNAME = 14,
  TAG_REALTIME_NS = 15,
  TAG_ENTROPY = 16,
  TAG_MOUNT = 17,
  TAG_AGENT = 18,
  TAG_GRACE_MS = 19,
  TAG_PATH = 20,
  TAG_MODE = 21,
  TAG_UID = 22,
  TAG_GID = 23,
  TAG_MTIME = 24,
  TAG_SIZE = 25,
  TAG_TYPE = 26,
  TAG_LINK_TARGET = 27,
  TAG_FOLLOW = 28,
  TAG_BASENAME = 29,
  TAG_ERROR = 30,
  TAG_ERRNO = 31,
  TAG_EXISTS = 32,
  TAG_BYTES = 33,
  TAG_UPTIME_MS = 34,
  TAG_KERNEL = 35,
  TAG_MEMORY_TOTAL = 36,
  TAG_OOM = 37,
  TAG_BOOT_ID = 38,
  TAG_DEVICE = 39,
  TAG_READONLY = 40,
  TAG_OVERLAY_DEVICE = 41,
  TAG_NETWORK = 42,
  TAG_MAC = 43,
  TAG_ADDRESS = 44,
  TAG_GATEWAY = 45,
  TAG_DNS = 46,
  TAG_SYNC = 47,
  TAG_NEW_MACHINE = 48,
  TAG_TRUST = 49,
  TAG_CERTIFICATE = 50,
  TAG_SUBJECT_HASH = 51,
  TAG_BUNDLE = 52,
  TAG_KERNEL_HEADERS = 53,
  TAG_PORT = 54,
};

// Exit codes that stand for something else than the program's own.
enum {
  NO_EXIT = 0, // of a request that was refused: nothing was tried
  EXIT_TIMED_OUT = 124,
  EXIT_NOT_EXECUTABLE = 126,
  EXIT_NOT_FOUND = 127,
  EXIT_BOOT_FAILED = 255,
};

#endif
