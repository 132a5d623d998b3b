// The bundles of an image: files with all its authorities. Each distribution has its own path, and often several names for one file.
#include "trust-bundles.h"
#include "log.h"
#include "root-files.h"
#include "trust-place.h"
#include "trust-text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// In order of preference as the link's target. A path must never be removed from this list, so that what was placed can be taken out.
static const char *const paths[TRUST_BUNDLE_PATHS] = {
  TRUST_FOLDER "/" TRUST_GIVEN, // Debian, Ubuntu, Alpine, Arch, Gentoo, distroless
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // RHEL, Fedora, Amazon
  "/etc/pki/tls/certs/ca-bundle.crt", // the same, under its old name
  "/etc/pki/tls/cert.pem",
  "/etc/pki/tls/cacert.pem", // OpenELEC
  "/var/lib/ca-certificates/ca-bundle.pem", // SUSE
  "/etc/ssl/ca-bundle.pem", // the same, under its old name
  "/etc/ca-certificates/extracted/tls-ca-bundle.pem", // Arch
  "/etc/ssl/cert.pem", // Alpine, LibreSSL
  "/etc/ssl/certs/ca-bundle.crt", // Nix
  "/usr/lib/ssl/cert.pem", // Debian's OpenSSL
  "/usr/local/ssl/cert.pem", // OpenSSL as its makers build it
};

// Files that are done: several paths lead to the same one.
struct seen {
  struct { dev_t device; ino_t inode; bool good; } files[TRUST_BUNDLE_PATHS];
  size_t count;
};

void trust_problem(struct trust_work *work, const char *path, int error) {
  work->problems++;
  log_problem("trust: %s: %s", path, strerror(error));
}

static bool *find_seen(struct seen *seen, const struct place *place) {
  for (size_t i = 0; i < seen->count; i++) {
    if (seen->files[i].device == place->facts.st_dev && seen->files[i].inode == place->facts.st_ino) return &seen->files[i].good;
  }
  return NULL;
}

static void remember(struct seen *seen, const struct place *place, bool good) {
  if (!place->exists || seen->count == TRUST_BUNDLE_PATHS) return;
  seen->files[seen->count].device = place->facts.st_dev;
  seen->files[seen->count].inode = place->facts.st_ino;
  seen->files[seen->count++].good = good;
}

static int write_with_block(struct place *place, const char *text, size_t length, const char *block, size_t block_length) {
  bool open_line = length > 0 && text[length - 1] != '\n';
  char *whole = malloc(length + 1 + block_length), *at = whole;
  if (whole == NULL) return ENOMEM;
  if (length > 0) at = mempcpy(at, text, length);
  if (open_line) *at++ = '\n';
  at = mempcpy(at, block, block_length);
  // Durable: half a bundle after a power cut would be taken for the image's own at the next start.
  int error = place_write(place, whole, (size_t)(at - whole), true);
  free(whole);
  return error;
}

// Whether the file already ends with the block, after other content. Saves reading all of it at each start.
static bool has_block(const struct place *place, const char *block, size_t block_length) {
  char *end = malloc(block_length + 1);
  if (end == NULL) return false;
  ssize_t got = place_read_end(place, end, block_length + 1);
  bool has = got == (ssize_t)block_length + 1 && trust_ends_with(end, (size_t)got, block, block_length);
  free(end);
  return has;
}

static int take_out(const struct place *place, const char *text, size_t kept, size_t length) {
  struct place target = *place;
  if (kept == length) return 0;
  // A file with only our content was made by us, so it is removed.
  if (kept == 0) return unlinkat(place->folder, place->name, 0) < 0 ? errno : 0;
  return place_write(&target, text, kept, true);
}

// Appends the block to a file that has authorities; 0 or errno. `good`: the file has it now.
static int append(struct trust_work *work, struct place *place, bool *good) {
  *good = has_block(place, work->block, work->block_length);
  if (*good) return 0;
  size_t length;
  char *text = place_read(place, TRUST_FILE_MAX, &length);
  if (text == NULL) return errno;
  size_t kept = trust_strip(text, length, work->known);
  int error = 0;
  if (pem_is_any(text, kept)) {
    error = write_with_block(place, text, kept, work->block, work->block_length);
    *good = error == 0;
  }
  free(text);
  return error;
}

static int take_out_of(struct trust_work *work, const struct place *place) {
  size_t length;
  char *text = place_read(place, TRUST_FILE_MAX, &length);
  // A file that we cannot read was not written by us either.
  if (text == NULL) return 0;
  size_t kept = trust_strip(text, length, work->known);
  int error = take_out(place, text, kept, length);
  free(text);
  return error;
}

// Whether the bundle exists and has the block, or with `out` no longer has it.
static bool visit(struct trust_work *work, const char *path, struct seen *seen, bool out) {
  struct place place;
  bool good = false;
  int error = root_find(work->root, path, &place);
  if (error == ENOENT || error == ENOTDIR) return false;
  if (error != 0) {
    if (!out) trust_problem(work, path, error);
    return false;
  }
  const bool *before = find_seen(seen, &place);
  if (before != NULL) good = *before;
  else if (place.exists) {
    error = out ? take_out_of(work, &place) : append(work, &place, &good);
    if (error != 0) trust_problem(work, path, error);
    remember(seen, &place, good);
    work->bundles += good;
  }
  close(place.folder);
  return good;
}

// The image has no bundle: it gets the host's, at the path that most programs know.
static void give(struct trust_work *work) {
  const struct trust *trust = work->trust;
  const char *authorities = trust->bundle_length > 0 ? trust->bundle : trust->certificate;
  struct place place;
  size_t block_length, length = 0;
  char *block = trust_block(authorities, strlen(authorities), &block_length), *text = NULL;
  int folder = root_open_folder(work->root, TRUST_FOLDER, true), error = folder < 0 ? errno : block == NULL ? ENOMEM : 0;
  if (folder >= 0) close(folder);
  if (error == 0) error = root_find(work->root, paths[0], &place);
  if (error == 0) {
    // The host's bundle may have changed since the last start.
    text = place_read(&place, TRUST_FILE_MAX, &length);
    if (text == NULL && place.exists) error = errno;
    bool same = text != NULL && length == block_length && memcmp(text, block, length) == 0;
    size_t kept = text == NULL || same ? 0 : trust_strip(text, length, work->known);
    if (error == 0 && !same) error = write_with_block(&place, text, kept, block, block_length);
    close(place.folder);
  }
  free(text);
  free(block);
  if (error != 0) trust_problem(work, paths[0], error);
  else work->primary = paths[0];
}

void trust_bundles(struct trust_work *work) {
  struct seen seen = { .count = 0 }, again = { .count = 0 };
  bool good[TRUST_BUNDLE_PATHS], out = work->trust->certificate == NULL;
  for (size_t i = 0; i < TRUST_BUNDLE_PATHS; i++) {
    good[i] = visit(work, paths[i], &seen, out);
    if (good[i] && work->primary == NULL) work->primary = paths[i];
  }
  if (out) return;
  if (work->primary == NULL) {
    give(work);
    return;
  }
  // An image that was given a bundle and has got one of its own since.
  for (size_t i = 0; i < TRUST_BUNDLE_PATHS; i++) {
    if (!good[i]) visit(work, paths[i], &again, true);
  }
}
