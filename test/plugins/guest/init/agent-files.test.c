// put, get and stat as a host sees them.
#include "check.h"
#include "client.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct client client;
static struct answer answer;
static char folder[] = "/tmp/berth-init-files-XXXXXX";
static char path[512];

static const char *in(const char *name) {
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static bool holds(const char *name, const char *content) {
  char text[256] = "";
  int fd = open(in(name), O_RDONLY);
  if (fd < 0) return false;
  ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  return got == (ssize_t)strlen(content) && strcmp(text, content) == 0;
}

static int leftovers(const char *name) {
  int count = 0;
  DIR *entries = opendir(in(name));
  struct dirent *entry;
  while (entries != NULL && (entry = readdir(entries)) != NULL) count += strncmp(entry->d_name, ".berth-put-", 11) == 0;
  if (entries != NULL) closedir(entries);
  return count;
}

static bool half_is_there(void) {
  return leftovers("new") == 1;
}

static bool half_is_gone(void) {
  return leftovers("new") == 0;
}

static void send_content(uint32_t channel, const char *content) {
  client_send(&client, FRAME_DATA, channel, STREAM_IN, content, strlen(content));
  client_send(&client, FRAME_EOF, channel, STREAM_IN, NULL, 0);
  client_answer(&client, channel, &answer, true, 5000);
}

static uint64_t error_number(void) {
  uint64_t number = answer.ended ? fields_number(&answer.fields, TAG_ERRNO, 0) : 9999;
  answer_free(&answer);
  return number;
}

static void put_files(void) {
  struct stat facts;
  send_content(client_open(&client, "put", TAG_PATH, in("new/deep/file"), TAG_TYPE, "file", TAG_MODE, 04751L, TAG_UID, 12L, TAG_GID, 34L, TAG_MTIME, 1000000L, 0), "content");
  check(fields_number(&answer.fields, TAG_BYTES, 0) == 7 && error_number() == 0 && holds("new/deep/file", "content"), "a file is written, and its folders are made");
  check(stat(in("new/deep/file"), &facts) == 0 && (facts.st_mode & 07777) == 04751 && facts.st_uid == 12 && facts.st_gid == 34 && facts.st_mtime == 1000000, "with mode, owner and time");
  send_content(client_open(&client, "put", TAG_PATH, in("new/deep"), TAG_TYPE, "file", TAG_BASENAME, "inside", 0), "x");
  check(error_number() == 0 && holds("new/deep/inside", "x") && stat(in("new/deep/inside"), &facts) == 0 && (facts.st_mode & 07777) == 0644 && facts.st_uid == 0, "into an existing folder it goes under its own name, with the usual mode");
  send_content(client_open(&client, "put", TAG_PATH, in("new/deep/inside"), TAG_TYPE, "file", TAG_BASENAME, "other", 0), "replaced");
  check(error_number() == 0 && holds("new/deep/inside", "replaced"), "an existing file is replaced");
  send_content(client_open(&client, "put", TAG_PATH, in("new/deep"), TAG_TYPE, "file", 0), "x");
  check(error_number() == EISDIR, "a folder is not replaced by a file");
  send_content(client_open(&client, "put", TAG_PATH, in("new/deep"), TAG_TYPE, "file", TAG_BASENAME, "../escape", 0), "x");
  check(error_number() == EINVAL, "a name with a slash is refused");
  send_content(client_open(&client, "put", TAG_PATH, in("new/deep/inside/below"), TAG_TYPE, "file", 0), "x");
  check(error_number() == ENOTDIR, "below a file nothing can be made");
  check(symlink("deep/inside", in("new/link")) == 0, "a symbolic link");
  send_content(client_open(&client, "put", TAG_PATH, in("new/link"), TAG_TYPE, "file", 0), "through");
  check(error_number() == 0 && holds("new/deep/inside", "through") && lstat(in("new/link"), &facts) == 0 && S_ISLNK(facts.st_mode), "is followed");
  check(symlink("round", in("new/round")) == 0, "a link to itself");
  send_content(client_open(&client, "put", TAG_PATH, in("new/round"), TAG_TYPE, "file", 0), "x");
  check(error_number() == ELOOP, "is refused");
}

static void put_folders(void) {
  struct stat facts;
  uint32_t channel = client_open(&client, "put", TAG_PATH, in("made/twice"), TAG_TYPE, "dir", TAG_MODE, 01700L, TAG_UID, 5L, 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(error_number() == 0 && stat(in("made/twice"), &facts) == 0 && (facts.st_mode & 07777) == 01700 && facts.st_uid == 5, "a folder is made with mode and owner");
  channel = client_open(&client, "put", TAG_PATH, in("made/twice"), TAG_TYPE, "dir", TAG_MODE, 0755L, 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(error_number() == 0 && stat(in("made/twice"), &facts) == 0 && (facts.st_mode & 07777) == 01700, "an existing one stays as it is");
}

static void put_interrupted(void) {
  uint32_t channel = client_open(&client, "put", TAG_PATH, in("new/half"), TAG_TYPE, "file", 0);
  client_send(&client, FRAME_DATA, channel, STREAM_IN, "half", 4);
  check(client_wait_for(half_is_there), "a file is written beside its target");
  client_control(&client, channel, "cancel", 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(error_number() == ECANCELED && leftovers("new") == 0 && access(in("new/half"), F_OK) < 0, "cancelling leaves nothing");
  channel = client_open(&client, "put", TAG_PATH, in("new/half"), TAG_TYPE, "file", 0);
  client_send(&client, FRAME_DATA, channel, STREAM_IN, "half", 4);
  check(client_wait_for(half_is_there) && client_sync(&client) != NULL, "a new sync in the middle of a file");
  check(client_wait_for(half_is_gone) && access(in("new/half"), F_OK) < 0, "leaves nothing either");
}

// Splits a get stream into "path type [content]" lines.
static void describe(char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (size_t at = 0; at + 4 <= answer.length[1];) {
    uint32_t length;
    memcpy(&length, answer.bytes[1] + at, 4);
    uint8_t *entry = malloc(length + 1);
    memcpy(entry, answer.bytes[1] + at + 4, length);
    struct fields fields;
    if (fields_parse(entry, length, &fields) != 0) abort();
    at += 4 + length;
    const char *type = fields_string(&fields, TAG_TYPE, "error");
    size_t content = strcmp(type, "file") == 0 ? fields_number(&fields, TAG_SIZE, 0) : 0;
    used += (size_t)snprintf(text + used, size - used, "%s:%s:%s%.*s\n", fields_string(&fields, TAG_PATH, "?"), type,
                             fields_string(&fields, TAG_LINK_TARGET, ""), content > 20 ? 0 : (int)content, answer.bytes[1] + at);
    at += content;
    fields_free(&fields);
    free(entry);
  }
}

static void get(const char *what, long follow, char *text, size_t size) {
  uint32_t channel = client_open(&client, "get", TAG_PATH, what, TAG_FOLLOW, follow, 0);
  client_answer(&client, channel, &answer, true, 10000);
  describe(text, size);
}

static void gets(void) {
  static char text[65536];
  bool made = mkdir(in("tree"), 0755) == 0 && mkdir(in("tree/sub"), 0755) == 0 && mkfifo(in("tree/sub/pipe"), 0600) == 0 && symlink("nowhere", in("tree/sub/link")) == 0;
  int fd = open(in("tree/sub/file"), O_CREAT | O_WRONLY, 0600);
  made = made && write(fd, "{\"a\":1}", 7) == 7 && symlink("tree", in("tree-link")) == 0;
  close(fd);
  check(made, "a tree");
  get(in("tree"), 0, text, sizeof text);
  check(strncmp(text, ":dir:\nsub:dir:\n", 15) == 0 && strstr(text, "\nsub/file:file:{\"a\":1}\n") != NULL && strstr(text, "\nsub/pipe:other:\n") != NULL &&
        strstr(text, "\nsub/link:symlink:nowhere\n") != NULL && error_number() == 0, "is sent whole, folders first, links and pipes as what they are");
  get(in("tree/sub/file"), 0, text, sizeof text);
  check(strcmp(text, ":file:{\"a\":1}\n") == 0 && error_number() == 0, "a file alone has the empty path");
  get(in("tree-link"), 0, text, sizeof text);
  check(strcmp(text, ":symlink:tree\n") == 0 && error_number() == 0, "a link is not followed");
  get(in("tree-link"), 1, text, sizeof text);
  check(strncmp(text, ":dir:\nsub:dir:\n", 15) == 0 && error_number() == 0, "unless that is asked for");
  get(in("missing"), 0, text, sizeof text);
  check(text[0] == 0 && error_number() == ENOENT, "what does not exist is an error");
  get("/proc/self/comm", 0, text, sizeof text);
  check(strstr(text, ":file:") == text && strlen(text) > 8 && error_number() == 0, "a file of /proc has its content, though its size is 0");
  get("/proc/self/fdinfo", 0, text, sizeof text);
  check(strstr(text, "\n0:file:") != NULL && error_number() == 0, "so has a folder of it that was asked for");
}

static void get_great(void) {
  int fd = open(in("great"), O_CREAT | O_WRONLY, 0600);
  check(ftruncate(fd, 3 << 20) == 0 && pwrite(fd, "end", 3, (3 << 20) - 3) == 3, "a file of 3 MiB");
  close(fd);
  uint32_t channel = client_open(&client, "get", TAG_PATH, in("great"), 0);
  client_answer(&client, channel, &answer, true, 10000);
  check(answer.length[1] > 3 << 20 && memcmp(answer.bytes[1] + answer.length[1] - 3, "end", 3) == 0 && error_number() == 0, "comes whole");
  channel = client_open(&client, "get", TAG_PATH, in("great"), 0);
  check(client_until(&client, channel, &answer, "", STREAM_CREDIT, false) && answer.length[1] == STREAM_CREDIT, "or as far as the credit goes");
  answer_free(&answer);
  // The file shrinks under way: the promised size still holds.
  check(truncate(in("great"), 100) == 0, "it shrinks");
  client_credit(&client, channel, STREAM_OUT, 4 << 20);
  client_answer(&client, channel, &answer, false, 5000);
  check(answer.length[1] > (3 << 20) - STREAM_CREDIT && error_number() == 0, "and is filled up to its size");
}

// A file without blocks may have any size, which any user can give it.
static void absurd_size(void) {
  static char name[64], text[4096];
  int fd = memfd_create("absurd", 0);
  check(fd >= 0 && ftruncate(fd, (off_t)7 << 60) == 0, "a sparse file of 7 EiB");
  snprintf(name, sizeof name, "/proc/%d/fd/%d", (int)getpid(), fd);
  uint32_t channel = client_open(&client, "stat", TAG_PATH, name, TAG_FOLLOW, 1L, 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(answer.ended && fields_number(&answer.fields, TAG_SIZE, 0) == (1ULL << 53) - 1, "has the largest size that a host can count to");
  answer_free(&answer);
  channel = client_open(&client, "get", TAG_PATH, name, TAG_FOLLOW, 1L, 0);
  client_answer(&client, channel, &answer, false, 5000);
  describe(text, sizeof text);
  check(strcmp(text, ":error:\n") == 0 && error_number() == 0, "and is an entry that cannot be read");
  close(fd);
}

static void get_deep(void) {
  static char text[1 << 20];
  int here = open(folder, O_RDONLY | O_DIRECTORY);
  bool made = mkdirat(here, "deep", 0755) == 0;
  int at = openat(here, "deep", O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < 300; i++) {
    made = made && mkdirat(at, "d", 0755) == 0;
    int next = openat(at, "d", O_RDONLY | O_DIRECTORY);
    close(at);
    at = next;
  }
  close(at);
  close(here);
  get(in("deep"), 0, text, sizeof text);
  check(made && strstr(text, ":error:") != NULL && error_number() == 0, "a tree of 300 levels ends with an error entry, not with a crash");
}

static void stats(void) {
  uint32_t channel = client_open(&client, "stat", TAG_PATH, in("tree/sub/file"), 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(fields_number(&answer.fields, TAG_EXISTS, 0) == 1 && strcmp(fields_string(&answer.fields, TAG_TYPE, ""), "file") == 0 &&
        fields_number(&answer.fields, TAG_SIZE, 0) == 7 && fields_number(&answer.fields, TAG_MODE, 0) == 0600, "the facts of a file");
  answer_free(&answer);
  channel = client_open(&client, "stat", TAG_PATH, in("tree-link"), 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(strcmp(fields_string(&answer.fields, TAG_TYPE, ""), "symlink") == 0 && strcmp(fields_string(&answer.fields, TAG_LINK_TARGET, ""), "tree") == 0, "of a link");
  answer_free(&answer);
  channel = client_open(&client, "stat", TAG_PATH, in("tree-link"), TAG_FOLLOW, 1L, 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(strcmp(fields_string(&answer.fields, TAG_TYPE, ""), "dir") == 0, "of what it points at");
  answer_free(&answer);
  channel = client_open(&client, "stat", TAG_PATH, in("tree/sub/file/below"), 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(answer.ended && fields_number(&answer.fields, TAG_EXISTS, 1) == 0 && error_number() == 0, "what cannot exist does not exist");
  channel = client_open(&client, "stat", TAG_PATH, in("new/round"), TAG_FOLLOW, 1L, 0);
  client_answer(&client, channel, &answer, true, 5000);
  check(error_number() == ELOOP, "a real failure is one");
}

int main(void) {
  if (mkdtemp(folder) == NULL) return 1;
  client_start(&client);
  check(client_sync(&client) != NULL && client_run_sleeper(&client), "the guest runs");
  put_files();
  put_folders();
  put_interrupted();
  gets();
  get_great();
  absurd_size();
  get_deep();
  stats();
  client_open(&client, "shutdown", TAG_GRACE_MS, 1000L, 0);
  check(client_join(&client, 10000), "the agent ends without a fault");
  client_end(&client);
  int status = checks_end();
  char command[sizeof folder + 16];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) == 0 ? status : 1;
}
