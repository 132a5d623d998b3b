// Where the egress authority is put into roots of several kinds, friendly and hostile. trust-text.test.c has how it comes.
#include "check.h"
#include "java-store.h"
#include "protocol.h"
#include "root-files.h"
#include "trust-place.h"
#include "trust-text.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PEM(body) "-----BEGIN CERTIFICATE-----\n" body "\n-----END CERTIFICATE-----\n"

static const char own[] = PEM("T1dO"), other[] = PEM("T1RIRVI="), roots[] = "# roots\n" PEM("Uk9PVEE=") PEM("Uk9PVEI="), given[] = PEM("R0lWRU4=") PEM("T1dO");

// --- where it is put ---

static char tree[64], disk_path[80];
static int root, disk;

static const char *below(const char *path) {
  static char paths[4][512];
  static int turn;
  char *into = paths[turn++ % 4];
  snprintf(into, sizeof paths[0], "%s%s", tree, path);
  return into;
}

static void put(const char *path, const char *text) {
  char folder[512];
  snprintf(folder, sizeof folder, "%s", below(path));
  for (char *slash = strchr(folder + strlen(tree) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    mkdir(folder, 0755);
    *slash = '/';
  }
  if (text == NULL) return;
  FILE *file = fopen(folder, "w");
  if (file == NULL) return;
  fputs(text, file);
  fclose(file);
}

static void put_symlink(const char *path, const char *target) {
  put(path, NULL);
  if (symlink(target, below(path)) < 0) perror(path);
}

static const char *text_of(const char *path) {
  static char texts[3][8192];
  static int turn;
  char *into = texts[turn++ % 3];
  FILE *file = fopen(below(path), "r");
  into[0] = 0;
  if (file == NULL) return "(absent)";
  into[fread(into, 1, sizeof texts[0] - 1, file)] = 0;
  fclose(file);
  return into;
}

static bool is(const char *path, const char *format, ...) {
  char wanted[8192];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(wanted, sizeof wanted, format, arguments);
  va_end(arguments);
  return strcmp(text_of(path), wanted) == 0;
}

static bool leads(const char *path, const char *target) {
  char link[512];
  ssize_t length = readlink(below(path), link, sizeof link - 1);
  return length >= 0 && (size_t)length == strlen(target) && memcmp(link, target, (size_t)length) == 0;
}

static bool is_absent(const char *path) {
  struct stat facts;
  return lstat(below(path), &facts) < 0 && errno == ENOENT;
}

static void begin_tree(void) {
  strcpy(tree, "/tmp/berth-trust-XXXXXX");
  if (mkdtemp(tree) == NULL) abort();
  snprintf(disk_path, sizeof disk_path, "%s.disk", tree);
  mkdir(disk_path, 0755);
  root = open(tree, O_PATH | O_DIRECTORY | O_CLOEXEC);
  disk = open(disk_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void end_tree(void) {
  char command[600];
  close(root);
  close(disk);
  snprintf(command, sizeof command, "rm -rf '%s' '%s'", tree, disk_path);
  if (system(command) != 0) perror(command);
}

static struct trust trust_in(const char *certificate, const char *hash, const char *bundle) {
  struct trust trust = { .certificate = (char *)certificate, .bundle = (char *)bundle, .bundle_length = bundle == NULL ? 0 : strlen(bundle) };
  if (hash != NULL) strcpy(trust.hash, hash);
  return trust;
}

#define BLOCK(text) TRUST_BEGIN text TRUST_END
#define OWN PEM("T1dO")
#define OTHER PEM("T1RIRVI=")

// Every name with its number, size and time of change: what a second start must leave alone.
static const char *listing(void) {
  static char texts[2][16384];
  static int turn;
  char command[700];
  char *into = texts[turn++ % 2];
  snprintf(command, sizeof command, "find '%s' '%s' ! -type d -printf '%%p %%i %%s %%T@ %%l\\n' | sort", tree, disk_path);
  FILE *lines = popen(command, "r");
  into[fread(into, 1, sizeof texts[0] - 1, lines)] = 0;
  pclose(lines);
  return into;
}

static bool place(const char *certificate, const char *hash) {
  struct trust trust = trust_in(certificate, hash, certificate == NULL ? NULL : given);
  return trust_place(root, disk, &trust);
}

static void debian(void) {
  begin_tree();
  put("/etc/ssl/certs/ca-certificates.crt", roots);
  put("/usr/share/ca-certificates/a.crt", PEM("Uk9PVEE="));
  put_symlink("/etc/ssl/certs/0123abcd.0", "a.pem");
  put_symlink("/usr/lib/ssl/cert.pem", "/etc/ssl/certs/ca-certificates.crt");
  chmod(below("/etc/ssl/certs/ca-certificates.crt"), 0640);
  check(place(own, "0123abcd") && is("/etc/ssl/certs/ca-certificates.crt", "%s" BLOCK(OWN), roots), "the bundle of Debian gets it at its end");
  struct stat facts;
  check(stat(below("/etc/ssl/certs/ca-certificates.crt"), &facts) == 0 && (facts.st_mode & 07777) == 0640, "and keeps its mode");
  check(leads("/etc/ssl/certs/berth-ca-bundle.crt", "ca-certificates.crt") && is("/etc/ssl/certs/berth-ca-bundle.crt", "%s" BLOCK(OWN), roots), "the stable path leads to it");
  check(leads("/etc/ssl/certs/0123abcd.0", "a.pem") && leads("/etc/ssl/certs/0123abcd.1", "berth-egress.pem") && is("/etc/ssl/certs/berth-egress.pem", BLOCK(OWN)), "its hash takes the next free number");
  check(is("/usr/local/share/ca-certificates/berth-egress.crt", BLOCK(OWN)), "update-ca-certificates finds it");
  check(is_absent("/etc/pki") && is_absent("/var"), "places of other distributions are not made");
  const char *before = listing();
  check(place(own, "0123abcd") && strcmp(before, listing()) == 0, "a second start changes nothing");
  // What update-ca-certificates does.
  char again[1024];
  snprintf(again, sizeof again, "%s" BLOCK(OWN) PEM("TEFURVI="), roots);
  put("/etc/ssl/certs/ca-certificates.crt", again);
  unlink(below("/etc/ssl/certs/berth-egress.pem"));
  put_symlink("/etc/ssl/certs/berth-egress.pem", "/usr/local/share/ca-certificates/berth-egress.crt");
  check(place(own, "0123abcd") && is("/etc/ssl/certs/ca-certificates.crt", "%s" PEM("TEFURVI=") BLOCK(OWN), roots), "what a tool of the image has built anew has it once");
  check(leads("/etc/ssl/certs/berth-egress.pem", "/usr/local/share/ca-certificates/berth-egress.crt"), "and its links stay");
  check(place(other, "89abcdef") && is("/etc/ssl/certs/ca-certificates.crt", "%s" PEM("TEFURVI=") BLOCK(OTHER), roots) && is_absent("/etc/ssl/certs/0123abcd.1") &&
        leads("/etc/ssl/certs/89abcdef.0", "berth-egress.pem") && is("/usr/local/share/ca-certificates/berth-egress.crt", BLOCK(OTHER)), "another authority takes its place everywhere");
  check(place(NULL, NULL) && is("/etc/ssl/certs/ca-certificates.crt", "%s" PEM("TEFURVI="), roots) && is_absent("/etc/ssl/certs/89abcdef.0") && is_absent("/etc/ssl/certs/berth-egress.pem") &&
        is_absent("/etc/ssl/certs/berth-ca-bundle.crt") && is_absent("/usr/local/share/ca-certificates/berth-egress.crt") && leads("/etc/ssl/certs/0123abcd.0", "a.pem"), "without trust nothing of it is left");
  before = listing();
  check(place(NULL, NULL) && strcmp(before, listing()) == 0 && faccessat(disk, TRUST_RECORD, F_OK, 0) < 0, "and a later start has nothing to do");
  end_tree();
}

static void red_hat(void) {
  begin_tree();
  put("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", roots);
  put("/etc/pki/ca-trust/source/anchors/README", "anchors");
  put_symlink("/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem");
  put_symlink("/etc/pki/tls/cert.pem", "certs/ca-bundle.crt");
  put_symlink("/etc/ssl/certs", "../pki/tls/certs");
  check(place(own, "0123abcd") && is("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "%s" BLOCK(OWN), roots), "the bundle of Red Hat gets it once, for all its names");
  check(leads("/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem") && leads("/etc/pki/tls/cert.pem", "certs/ca-bundle.crt"), "the names stay links");
  check(is("/etc/pki/ca-trust/source/anchors/berth-egress.crt", BLOCK(OWN)) && leads("/etc/pki/tls/certs/0123abcd.0", "berth-egress.pem"), "update-ca-trust finds it, and so do programs that ask by hash");
  check(leads("/etc/pki/tls/certs/berth-ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"), "the stable path is there");
  // What update-ca-trust writes: no marks, in the middle.
  put("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "# roots\n" PEM("Uk9PVEE=") OWN PEM("Uk9PVEI="));
  check(place(NULL, NULL) && is("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "%s", roots) && is_absent("/etc/pki/ca-trust/source/anchors/berth-egress.crt") && is_absent("/etc/pki/tls/certs/0123abcd.0"), "it is taken out where a tool has written it, too");
  end_tree();
}

static void others(void) {
  begin_tree();
  put("/etc/ssl/certs/ca-certificates.crt", roots);
  put_symlink("/etc/ssl/cert.pem", "certs/ca-certificates.crt");
  put("/var/lib/ca-certificates/ca-bundle.pem", "# no newline\n-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----");
  put("/var/lib/ca-certificates/pem/x", "");
  put_symlink("/etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates/ca-bundle.pem");
  check(place(own, "0123abcd") && is("/etc/ssl/cert.pem", "%s" BLOCK(OWN), roots), "Alpine's second name has it");
  check(is("/var/lib/ca-certificates/ca-bundle.pem", "# no newline\n" PEM("QQ==") BLOCK(OWN)) && leads("/var/lib/ca-certificates/pem/0123abcd.0", "berth-egress.pem"), "so has the bundle of SUSE, on a line of its own");
  end_tree();
}

static void empty(void) {
  begin_tree();
  check(place(own, "0123abcd") && is("/etc/ssl/certs/ca-certificates.crt", TRUST_BEGIN "%s" TRUST_END, given), "an image without a bundle is given one");
  check(leads("/etc/ssl/certs/berth-ca-bundle.crt", "ca-certificates.crt") && leads("/etc/ssl/certs/0123abcd.0", "berth-egress.pem"), "with all the rest");
  const char *before = listing();
  check(place(own, "0123abcd") && strcmp(before, listing()) == 0, "a second start changes nothing");
  struct trust trust = trust_in(own, "0123abcd", roots);
  check(trust_place(root, disk, &trust) && is("/etc/ssl/certs/ca-certificates.crt", BLOCK("%s"), roots), "another bundle of the host takes its place");
  // The image gets its own.
  put("/etc/pki/tls/certs/ca-bundle.crt", roots);
  check(place(own, "0123abcd") && is("/etc/pki/tls/certs/ca-bundle.crt", "%s" BLOCK(OWN), roots) && is_absent("/etc/ssl/certs/ca-certificates.crt") &&
        leads("/etc/ssl/certs/berth-ca-bundle.crt", "/etc/pki/tls/certs/ca-bundle.crt"), "it gives way to a bundle of the image's own");
  check(place(NULL, NULL) && is("/etc/pki/tls/certs/ca-bundle.crt", "%s", roots) && is_absent("/etc/ssl/certs/berth-egress.pem"), "all of it can be taken out");
  end_tree();
  begin_tree();
  put("/etc/ssl/certs/ca-certificates.crt", "");
  trust = trust_in(own, "0123abcd", NULL);
  check(trust_place(root, disk, &trust) && is("/etc/ssl/certs/ca-certificates.crt", BLOCK(OWN)), "without a bundle of the host the certificate alone is one");
  check(place(NULL, NULL) && is_absent("/etc/ssl/certs/ca-certificates.crt"), "and goes");
  end_tree();
}

static void hostile(void) {
  begin_tree();
  char outside[300], link[400];
  snprintf(outside, sizeof outside, "%s.outside", tree);
  mkdir(outside, 0755);
  snprintf(link, sizeof link, "%s/bundle", outside);
  FILE *file = fopen(link, "w");
  fputs(roots, file);
  fclose(file);
  put_symlink("/etc/ssl/certs/ca-certificates.crt", link);
  put_symlink("/etc/pki/tls/certs/ca-bundle.crt", "../../../../../../../../../../../../../../../../../../etc/passwd");
  put_symlink("/etc/pki/tls/cert.pem", "cert.pem");
  put_symlink("/usr/local/share/ca-certificates", "/../../../../../../../tmp");
  put("/var/lib/ca-certificates/x", "");
  mkfifo(below("/var/lib/ca-certificates/ca-bundle.pem"), 0666);
  mkfifo(below("/etc/ssl/certs/berth-egress.pem"), 0666);
  put("/etc/ca-certificates/extracted/x", "");
  mkdir(below("/etc/ca-certificates/extracted/tls-ca-bundle.pem"), 0755);
  put("/etc/ssl/cert.pem", roots);
  truncate(below("/etc/ssl/cert.pem"), 1LL << 40);
  mkdir(below("/etc/ssl/certs/berth-ca-bundle.crt"), 0755);
  mkdir(below("/etc/ssl/certs/0123abcd.0"), 0755);
  put("/etc/pki/ca-trust/source/anchors", "a file");
  put_symlink("/usr/local/ssl/certs", "/proc/self/root");
  check(!place(own, "0123abcd"), "links out of the root, fifos, folders and endless files end it with a no");
  file = fopen(link, "r");
  char kept[1024] = "";
  kept[fread(kept, 1, sizeof kept - 1, file)] = 0;
  fclose(file);
  check(strcmp(kept, roots) == 0 && access("/tmp/berth-egress.crt", F_OK) < 0, "nothing outside of the root is touched");
  check(is("/etc/ssl/certs/berth-egress.pem", BLOCK(OWN)) && leads("/etc/ssl/certs/0123abcd.1", "berth-egress.pem"), "what can be placed is");
  check(place(NULL, NULL) && is_absent("/etc/ssl/certs/berth-egress.pem"), "and goes again");
  unlink(link);
  rmdir(outside);
  end_tree();
  begin_tree();
  put("/etc", "a file");
  check(!place(own, "0123abcd"), "a root without a place for it says so");
  end_tree();
  begin_tree();
  put("/etc/ssl/certs/ca-certificates.crt", roots);
  check(place(own, "0123abcd"), "a record is there");
  int torn = openat(disk, TRUST_RECORD, O_WRONLY | O_TRUNC);
  close(torn);
  check(place(NULL, NULL) && is("/etc/ssl/certs/ca-certificates.crt", "%s", roots) && is_absent("/etc/ssl/certs/0123abcd.0"), "one that a power cut has torn still says that there was something");
  mkfifoat(disk, TRUST_RECORD, 0666);
  check(place(own, "0123abcd") && place(NULL, NULL), "and one that is none hangs nobody");
  end_tree();
}

// --- programs with places of their own ---

#define DER PEM("MAMCAQE=")
#define OTHER_DER PEM("MAIFAA==")
#define ROOT_DER PEM("MAEA")
#define STORE "/etc/ssl/berth-ca-bundle.jks"

static bool policies_are(const char *digits) {
  return is("/etc/chromium/policies/managed/berth-egress.json", "{\"CACertificates\":[\"%s\"]}\n", digits) &&
         is("/etc/opt/chrome/policies/managed/berth-egress.json", "{\"CACertificates\":[\"%s\"]}\n", digits) &&
         is("/etc/opt/chrome_for_testing/policies/managed/berth-egress.json", "{\"CACertificates\":[\"%s\"]}\n", digits);
}

static bool store_is_of(const char *text) {
  char found[4096];
  size_t wanted_length = 0;
  char *wanted = java_store(text, strlen(text), &wanted_length);
  FILE *file = fopen(below(STORE), "r");
  size_t length = file == NULL ? 0 : fread(found, 1, sizeof found, file);
  bool same = wanted != NULL && length == wanted_length && memcmp(found, wanted, length) == 0;
  if (file != NULL) fclose(file);
  free(wanted);
  return same;
}

static void programs(void) {
  begin_tree();
  put("/etc/ssl/certs/ca-certificates.crt", ROOT_DER);
  put("/etc/chromium/policies/managed/image.json", "{}");
  check(place(DER, "0123abcd") && store_is_of(ROOT_DER DER), "Java is given what the bundle has");
  check(policies_are("MAMCAQE=") && is("/etc/chromium/policies/managed/image.json", "{}"), "browsers are given a policy, beside those of the image");
  const char *before = listing();
  check(place(DER, "0123abcd") && strcmp(before, listing()) == 0, "a second start changes nothing");
  put("/etc/ssl/certs/ca-certificates.crt", ROOT_DER ROOT_DER);
  check(place(DER, "0123abcd") && store_is_of(ROOT_DER ROOT_DER DER), "a bundle that has changed makes another store");
  check(place(OTHER_DER, "89abcdef") && policies_are("MAIFAA==") && store_is_of(ROOT_DER ROOT_DER OTHER_DER), "so does another authority");
  check(place(NULL, NULL) && is_absent(STORE) && is_absent("/etc/chromium/policies/managed/berth-egress.json") && is_absent("/etc/opt/chrome/policies/managed/berth-egress.json") &&
        is_absent("/etc/opt/chrome_for_testing/policies/managed/berth-egress.json") && is("/etc/chromium/policies/managed/image.json", "{}"), "without trust they are gone");
  end_tree();
  begin_tree();
  put("/etc/ssl/certs/ca-certificates.crt", ROOT_DER);
  mkfifo(below(STORE), 0666);
  put("/etc/opt", "a file");
  put_symlink("/etc/chromium", "/../../../../../../tmp/chromium");
  check(place(DER, "0123abcd") && store_is_of(ROOT_DER DER) && access("/tmp/chromium", F_OK) < 0 && is("/etc/opt", "a file"), "no link and no file of the image leads them astray");
  end_tree();
}

int main(void) {
  debian();
  red_hat();
  others();
  empty();
  hostile();
  programs();
  return checks_end();
}
