// The kind trust: what a host announces before its `run`, and what becomes of it.
#include "check.h"
#include "client.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CERTIFICATE "-----BEGIN CERTIFICATE-----\nT1dO\n-----END CERTIFICATE-----\n"

static struct client client;
static char folder[] = "/tmp/berth-trusted-XXXXXX";

static bool answered(uint32_t channel, uint64_t error) {
  struct answer answer;
  client_answer(&client, channel, &answer, true, 5000);
  bool good = answer.ended && fields_number(&answer.fields, TAG_ERRNO, 0) == error && (error != 0 || answer.fields.count == 0);
  answer_free(&answer);
  return good;
}

static uint32_t announce(const char *bundle) {
  return client_open(&client, "trust", TAG_CERTIFICATE, CERTIFICATE, TAG_SUBJECT_HASH, "0123abcd", TAG_BUNDLE, bundle, 0);
}

static uint32_t add(const char *bundle) {
  return client_open(&client, "trust", TAG_BUNDLE, bundle, 0);
}

static uint32_t run(long bytes) {
  return client_open(&client, "run", TAG_ARGV, "sleep", TAG_ARGV, "1000", TAG_TRUST, bytes, 0);
}

// The file that the stand-in for a machine wrote.
static bool trusted(const char *text) {
  char path[256], found[256] = "";
  snprintf(path, sizeof path, "%s/trusted", folder);
  FILE *file = fopen(path, "r");
  if (file == NULL) return text == NULL;
  found[fread(found, 1, sizeof found - 1, file)] = 0;
  fclose(file);
  unlink(path);
  return text != NULL && strcmp(found, text) == 0;
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

int main(void) {
  if (mkdtemp(folder) == NULL) abort();
  client_groups = folder;
  begin();
  check(answered(add("early"), EINVAL), "a piece without a certificate before it is refused");
  // Without waiting, as a host does.
  uint32_t channels[] = { announce("one "), add("two"), run(7) };
  check(answered(channels[0], 0) && answered(channels[1], 0) && answered(channels[2], 0) && trusted("0123abcd " CERTIFICATE "one two"), "what was announced is there at the start");
  check(answered(announce("late"), EALREADY), "a guest that has its workload takes no more");
  end();
  begin();
  check(answered(announce("one "), 0) && answered(run(7), EINVAL) && trusted(NULL), "a run whose trust has not come whole is refused");
  end();
  begin();
  check(answered(announce("all"), 0) && client_sync(&client) != NULL && answered(run(3), EINVAL), "a sync drops what was announced");
  end();
  begin();
  check(answered(announce("all"), 0) && client_run_sleeper(&client) && trusted(NULL), "a run that does not ask for it does not get it");
  end();
  rmdir(folder);
  return checks_end();
}
