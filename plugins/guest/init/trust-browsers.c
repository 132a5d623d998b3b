// The authority for browsers: as a policy of the machine's administrator, in JSON with the certificate's base64. Always written, since people install
// browsers while an instance runs.
#include "trust-browsers.h"
#include "root-files.h"
#include "trust-text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const folders[] = {
  "/etc/chromium/policies/managed",
  "/etc/opt/chrome/policies/managed",
  "/etc/opt/chrome_for_testing/policies/managed", // what Puppeteer and Playwright fetch
};

// Returns NULL without memory.
static char *policy_of(const char *certificate, size_t *length) {
  static const char before[] = "{\"CACertificates\":[\"", after[] = "\"]}\n";
  char *policy = malloc(sizeof before + strlen(certificate) + sizeof after);
  if (policy == NULL) return NULL;
  char *at = mempcpy(policy, before, sizeof before - 1);
  at += pem_digits(certificate, at);
  at = mempcpy(at, after, sizeof after - 1);
  *length = (size_t)(at - policy);
  return policy;
}

static int put_policy(int folder, const char *policy, size_t length) {
  struct place place;
  size_t have;
  int error = place_in(folder, TRUST_POLICY, &place);
  if (error != 0) return error;
  char *before = place_read(&place, length, &have);
  bool same = before != NULL && have == length && memcmp(before, policy, length) == 0;
  free(before);
  return same ? 0 : place_write(&place, policy, length, false);
}

static void visit(struct trust_work *work, const char *path, const char *policy, size_t length) {
  int folder = root_open_folder(work->root, path, policy != NULL), error = folder < 0 ? errno : 0;
  if (error == 0 && policy != NULL) error = put_policy(folder, policy, length);
  else if (error == 0 && unlinkat(folder, TRUST_POLICY, 0) < 0 && errno != ENOENT) error = errno;
  else if (policy == NULL && (error == ENOENT || error == ENOTDIR)) error = 0;
  if (error != 0) trust_problem(work, path, error);
  if (folder >= 0) close(folder);
}

void trust_browsers(struct trust_work *work) {
  const char *certificate = work->trust->certificate;
  size_t length = 0;
  char *policy = certificate == NULL ? NULL : policy_of(certificate, &length);
  if (certificate != NULL && policy == NULL) return trust_problem(work, TRUST_POLICY, ENOMEM);
  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) visit(work, folders[i], policy, length);
  free(policy);
}
