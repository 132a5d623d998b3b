// The kinds mount and unmount: who may ask and when, what is answered, and what a host that goes leaves. The mounts themselves are stand-ins here: test/integration/volumes.long.test.ts has real ones.
#include "check.h"
#include "client.h"
#include "clock.h"
#include "volumes.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct client client;
static struct answer answer;
static char trace[] = "/tmp/berth-volumes-XXXXXX";
static char folder[] = "/tmp/berth-mount-XXXXXX";
// While it is there, the mount of "serial:held" does not end.
static char gate[] = "/tmp/berth-gate-XXXXXX";

static bool note(const char *text) {
  int fd = open(trace, O_WRONLY | O_APPEND | O_CLOEXEC);
  bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  if (fd >= 0) close(fd);
  return good;
}

// Whether it says what was done since it was asked last.
static bool noted(const char *expected) {
  char found[1024] = "";
  int fd = open(trace, O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  client_read_all(fd, found, sizeof found);
  bool good = strcmp(found, expected) == 0 && ftruncate(fd, 0) == 0;
  close(fd);
  return good;
}

static bool mount_it(const struct volume *volume, dev_t *place, struct failure *failure) {
  struct stat facts;
  char text[512];
  snprintf(text, sizeof text, "mount %s %s %d %s;", volume->device, strcmp(volume->path, folder) == 0 ? "here" : volume->path, volume->readonly,
           volume->overlay_device == NULL ? "-" : volume->overlay_device);
  note(text);
  if (strcmp(volume->device, "serial:slow") == 0) usleep(400000);
  if (strcmp(volume->device, "serial:held") == 0) {
    while (access(gate, F_OK) == 0) usleep(5000);
  }
  if (strcmp(volume->device, "serial:dies") == 0) abort();
  if (strcmp(volume->device, "serial:missing") == 0) return fail(failure, ENODEV, 255, "the disk is missing");
  *place = stat(volume->path, &facts) == 0 ? facts.st_dev : 1;
  return true;
}

static bool unmount_it(const struct volume *volume, dev_t *place, struct failure *failure) {
  char text[512];
  snprintf(text, sizeof text, "unmount %s %s;", volume->device, *place == 0 ? "absent" : "there");
  note(text);
  return strcmp(volume->device, "serial:busy") != 0 || fail(failure, EBUSY, NO_EXIT, "it is in use");
}

// The fields of a mount, without a length that the header would not have.
static uint32_t ask(const char *path, const char *device, bool readonly, const char *overlay) {
  uint8_t nested[1024], bytes[2048];
  struct writer mount = { .bytes = nested, .capacity = sizeof nested }, open = { .bytes = bytes, .capacity = sizeof bytes };
  if (path != NULL) write_string(&mount, TAG_PATH, path);
  if (device != NULL) write_string(&mount, TAG_DEVICE, device);
  write_number(&mount, TAG_READONLY, readonly);
  if (overlay != NULL) write_string(&mount, TAG_OVERLAY_DEVICE, overlay);
  write_string(&open, TAG_KIND, "mount");
  write_field(&open, TAG_MOUNT, mount.bytes, mount.length);
  uint32_t channel = client.next_channel++;
  client_send(&client, FRAME_OPEN, channel, 0, open.bytes, open.length);
  return channel;
}

static uint32_t ask_plainly(const char *device) {
  return ask(folder, device, false, NULL);
}

static uint32_t unask(const char *device) {
  return client_open(&client, "unmount", TAG_DEVICE, device, 0);
}

// Whether the channel is answered with this errno; 0 for success.
static bool answered(uint32_t channel, uint64_t error) {
  client_answer(&client, channel, &answer, true, 5000);
  bool good = answer.ended && fields_number(&answer.fields, TAG_ERRNO, 0) == error && (error != 0 || answer.fields.count == 0);
  if (!good && answer.ended) printf("# errno %llu: %s\n", (unsigned long long)fields_number(&answer.fields, TAG_ERRNO, 0), fields_string(&answer.fields, TAG_ERROR, ""));
  answer_free(&answer);
  return good;
}

static void begin(void) {
  client_start(&client);
  client_sync(&client);
}

static void end(void) {
  client_open(&client, "shutdown", 0);
  check(client_join(&client, 10000), "the agent ends without a fault");
  client_end(&client);
}

static void refusals(void) {
  client_mount = NULL;
  begin();
  check(answered(ask_plainly("serial:a"), EOPNOTSUPP) && answered(unask("serial:a"), EOPNOTSUPP), "a guest that has no volumes says so");
  end();
  client_mount = mount_it;
  client_unmount = unmount_it;
  begin();
  check(answered(ask_plainly("serial:a"), EAGAIN), "a guest without a workload gets its volumes with that");
  client_run_sleeper(&client);
  check(answered(ask("relative", "serial:a", false, NULL), EINVAL) && answered(ask(folder, "sda", false, NULL), EINVAL) &&
        answered(ask(folder, "serial:", false, NULL), EINVAL) && answered(ask(folder, "serial:../x", false, NULL), EINVAL) &&
        answered(ask(folder, "serial:a/b", false, NULL), EINVAL) && answered(ask(folder, NULL, false, NULL), EINVAL) &&
        answered(ask(NULL, "serial:a", false, NULL), EINVAL) && answered(ask(folder, "serial:a", true, "sdb"), EINVAL) &&
        answered(client_open(&client, "mount", 0), EINVAL) && answered(client_open(&client, "unmount", 0), EINVAL) &&
        answered(client_open(&client, "mount", TAG_MOUNT, "not fields", 0), EINVAL), "what names no mount is refused");
  check(noted(""), "and nothing was tried");
  end();
}

static void life(void) {
  begin();
  client_run_sleeper(&client);
  check(answered(ask(folder, "serial:a", true, "serial:b"), 0) && noted("mount serial:a here 1 serial:b;"), "a volume is mounted as it was asked for");
  check(answered(ask(folder, "serial:a", true, "serial:b"), 0) && noted(""), "once, however often it is asked for");
  check(answered(ask("/elsewhere", "serial:a", true, NULL), EEXIST), "at one place");
  check(answered(ask_plainly("serial:missing"), ENODEV) && noted("mount serial:missing here 0 -;"), "what cannot be mounted is answered with the reason");
  check(answered(ask_plainly("serial:dies"), EIO) && noted("mount serial:dies here 0 -;"), "a worker that dies takes nothing with it");
  check(answered(unask("serial:a"), 0) && noted("unmount serial:a there;"), "it is unmounted");
  check(answered(unask("serial:a"), 0) && noted("unmount serial:a absent;"), "asked again, its disk alone is looked for");
  check(answered(ask_plainly("serial:busy"), 0) && answered(unask("serial:busy"), EBUSY) && answered(unask("serial:busy"), EBUSY), "what is in use stays");
  noted("");
  check(answered(ask_plainly("serial:busy"), 0), "and is still there");
  for (int i = 0; i < 40; i++) {
    char device[32];
    snprintf(device, sizeof device, "serial:n%d", i);
    if (answered(ask_plainly(device), 0)) continue;
    check(i == 31, "there is room for so many volumes and no more");
    break;
  }
  check(answered(unask("serial:n3"), 0) && answered(ask_plainly("serial:again"), 0), "a place that is free is used again");
  end();
}

static void meetings(void) {
  begin();
  client_run_sleeper(&client);
  uint32_t slow = ask_plainly("serial:slow");
  check(answered(ask_plainly("serial:other"), EALREADY) && answered(unask("serial:slow"), EALREADY), "one comes or goes at a time");
  client_exec(&client, &answer, "", "echo meanwhile");
  check(answer.ended && strstr(answer.bytes[STREAM_OUT], "meanwhile") != NULL, "commands are served meanwhile");
  answer_free(&answer);
  check(answered(slow, 0), "and the first one comes to its end");
  noted("");
  // A host that goes in the middle of it hears nothing; what it began goes on.
  answered(unask("serial:slow"), 0);
  ask_plainly("serial:slow");
  usleep(50000);
  client_sync(&client);
  check(answered(ask_plainly("serial:late"), EALREADY), "a new host meets what an old one has begun");
  usleep(600000);
  check(answered(ask_plainly("serial:slow"), 0), "and finds it done");
  end();
}

// What reads its input sees the end of it while a mount or a flush is under way, whose process was forked with all of the agent's descriptors.
static void ends_of_input(void) {
  char target[64];
  snprintf(target, sizeof target, "%s/put", folder);
  int fd = mkstemp(gate);
  if (fd >= 0) close(fd);
  begin();
  client_run_sleeper(&client);
  uint32_t command = client_open(&client, "exec", TAG_ARGV, "cat", 0);
  uint32_t upload = client_open(&client, "put", TAG_PATH, target, TAG_TYPE, "file", 0);
  client_send(&client, FRAME_DATA, upload, STREAM_IN, "put", 3);
  uint32_t held = ask_plainly("serial:held");
  client_send(&client, FRAME_EOF, command, STREAM_IN, NULL, 0);
  client_answer(&client, command, &answer, true, 5000);
  check(answer.ended && fields_number(&answer.fields, TAG_EXIT_CODE, 9) == 0, "a command sees the end of its input while a volume is being mounted");
  answer_free(&answer);
  client_send(&client, FRAME_EOF, upload, STREAM_IN, NULL, 0);
  client_answer(&client, upload, &answer, true, 5000);
  check(answer.ended && fields_number(&answer.fields, TAG_ERRNO, 0) == 0 && access(target, F_OK) == 0, "and so does an upload");
  answer_free(&answer);
  unlink(gate);
  check(answered(held, 0), "and then the volume is there");
  unlink(target);
  end();
}

int main(void) {
  int fd = mkstemp(trace);
  if (fd < 0 || mkdtemp(folder) == NULL) return 2;
  close(fd);
  refusals();
  life();
  meetings();
  ends_of_input();
  unlink(trace);
  rmdir(folder);
  return checks_end();
}
