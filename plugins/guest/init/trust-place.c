// Puts the authority where programs and the tools of distributions look for authorities, and removes it again.
#include "trust-place.h"
#include "files.h"
#include "log.h"
#include "root-files.h"
#include "trust-browsers.h"
#include "trust-bundles.h"
#include "trust-java.h"
#include "trust-text.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HASHES_MAX = 16, ENTRIES_MAX = 100000, RECORD_MAX = TRUST_CERTIFICATE_MAX + 2 };

// The first one is made when it is missing.
static const char *const hashed_folders[] = { TRUST_FOLDER, "/etc/pki/tls/certs", "/var/lib/ca-certificates/pem", "/usr/local/ssl/certs" };
static const char *const anchor_folders[] = {
  TRUST_ANCHOR_FOLDER, // Debian, Alpine
  "/etc/pki/ca-trust/source/anchors", // RHEL
  "/etc/pki/trust/anchors", // SUSE
  "/etc/ca-certificates/trust-source/anchors", // Arch
};

#define COUNT(list) (sizeof (list) / sizeof (list)[0])

static bool wanted(const struct trust_work *work) {
  return work->trust->certificate != NULL;
}

// A tool of the distribution may have replaced our file by a link to the anchor.
static bool leads_to_anchor(const struct place *place) {
  static const char anchor[] = TRUST_ANCHOR_FOLDER "/" TRUST_ANCHOR;
  char link[sizeof anchor + 1];
  ssize_t length = readlinkat(place->folder, place->name, link, sizeof link);
  return length == sizeof anchor - 1 && memcmp(link, anchor, sizeof anchor - 1) == 0;
}

static bool is_block(const struct trust_work *work, const struct place *place) {
  size_t length;
  if (!place->exists || place->facts.st_size != (off_t)work->block_length) return false;
  char *text = place_read(place, work->block_length, &length);
  bool same = text != NULL && length == work->block_length && memcmp(text, work->block, length) == 0;
  free(text);
  return same;
}

// The certificate as a file of its own.
static int put_certificate(const struct trust_work *work, int folder, const char *name) {
  struct place place;
  if (!wanted(work)) return unlinkat(folder, name, 0) < 0 && errno != ENOENT ? errno : 0;
  int error = place_in(folder, name, &place);
  if (error != 0 || is_block(work, &place) || leads_to_anchor(&place)) return error;
  return place_write(&place, work->block, work->block_length, false);
}

static bool is_our_hash(int folder, const char *name) {
  char link[sizeof TRUST_HASHED + 1];
  if (strspn(name, "0123456789abcdef") != TRUST_HASH_SIZE - 1 || name[TRUST_HASH_SIZE - 1] != '.') return false;
  ssize_t length = readlinkat(folder, name, link, sizeof link);
  return length == sizeof TRUST_HASHED - 1 && memcmp(link, TRUST_HASHED, sizeof TRUST_HASHED - 1) == 0;
}

// Removes the links of an earlier certificate.
static void drop_hashes(const struct trust_work *work, int folder) {
  int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = fd < 0 ? NULL : fdopendir(fd);
  struct dirent *entry;
  if (entries == NULL) return;
  for (int i = 0; i < ENTRIES_MAX && (entry = readdir(entries)) != NULL; i++) {
    if (wanted(work) && strncmp(entry->d_name, work->trust->hash, TRUST_HASH_SIZE - 1) == 0) continue;
    if (is_our_hash(folder, entry->d_name)) unlinkat(folder, entry->d_name, 0);
  }
  closedir(entries);
}

// Uses the first free number, since OpenSSL tries them one after the other.
static int add_hash(const struct trust_work *work, int folder) {
  char name[TRUST_HASH_SIZE + 12];
  for (int i = 0; i < HASHES_MAX; i++) {
    snprintf(name, sizeof name, "%s.%d", work->trust->hash, i);
    if (is_our_hash(folder, name) || symlinkat(TRUST_HASHED, folder, name) == 0) return 0;
    if (errno != EEXIST) return errno;
  }
  return EEXIST;
}

static void visit_folder(struct trust_work *work, const char *path, bool make, const char *name, bool hashed, bool changed) {
  int folder = root_open_folder(work->root, path, make), error = folder < 0 ? errno : 0;
  // Most images have only one of these folders.
  if (!make && (error == ENOENT || error == ENOTDIR)) return;
  if (error == 0) error = put_certificate(work, folder, name);
  if (error == 0 && hashed && changed) drop_hashes(work, folder);
  if (error == 0 && hashed && wanted(work)) error = add_hash(work, folder);
  if (error != 0) trust_problem(work, path, error);
  if (folder >= 0) close(folder);
}

// The stable path: a link to a bundle. Without a bundle it is a bundle itself.
static void put_link(struct trust_work *work) {
  int folder = root_open_folder(work->root, TRUST_FOLDER, wanted(work));
  if (folder < 0) {
    if (wanted(work)) trust_problem(work, TRUST_FOLDER, errno);
    return;
  }
  struct place place;
  int error = place_in(folder, TRUST_BUNDLE, &place);
  const size_t own = sizeof TRUST_FOLDER "/" - 1;
  if (!wanted(work)) {
    if (error == 0 && place.exists && unlinkat(folder, TRUST_BUNDLE, 0) < 0) error = errno;
  } else if (error == 0 && work->primary != NULL) {
    // Within the folder the link's target has no folder in it: programs that read the whole folder skip such a link.
    error = place_link(&place, strncmp(work->primary, TRUST_FOLDER "/", own) == 0 ? work->primary + own : work->primary);
  } else if (error == 0) {
    const char *authorities = work->trust->bundle_length > 0 ? work->trust->bundle : work->trust->certificate;
    error = place_write(&place, authorities, strlen(authorities), true);
  }
  if (error != 0) trust_problem(work, TRUST_FOLDER "/" TRUST_BUNDLE, error);
  close(folder);
}

static void visit_all(struct trust_work *work, bool changed) {
  trust_bundles(work);
  for (size_t i = 0; i < COUNT(hashed_folders); i++) {
    visit_folder(work, hashed_folders[i], i == 0 && wanted(work), TRUST_HASHED, true, changed);
  }
  for (size_t i = 0; i < COUNT(anchor_folders); i++) {
    visit_folder(work, anchor_folders[i], i == 0 && wanted(work), TRUST_ANCHOR, false, changed);
  }
  put_link(work);
  trust_java(work);
  trust_browsers(work);
}

static void write_record(struct trust_work *work, struct place *record) {
  int error = place_write(record, work->trust->certificate, strlen(work->trust->certificate), false);
  if (error != 0) trust_problem(work, TRUST_RECORD, error);
}

bool trust_place(int root, int disk, const struct trust *trust) {
  struct trust_work work = { .root = root, .trust = trust };
  struct place record;
  if (place_in(disk, TRUST_RECORD, &record) != 0 || (!record.exists && !wanted(&work))) return true;
  size_t length = 0;
  // A record that was torn by a power cut shows at least that something was placed.
  char *before = place_read(&record, RECORD_MAX, &length);
  bool changed = record.exists && (before == NULL || trust->certificate == NULL || strcmp(before, trust->certificate) != 0);
  const char **known = work.known;
  if (before != NULL && pem_is_one(before, length)) *known++ = before;
  if (wanted(&work)) {
    *known = trust->certificate;
    work.block = trust_block(trust->certificate, strlen(trust->certificate), &work.block_length);
    if (work.block == NULL) log_problem("trust: out of memory");
    // Before anything else, so that an interrupted start can be undone; the record of an earlier certificate is replaced after everything else.
    if (!record.exists) write_record(&work, &record);
  }
  if (work.block != NULL || !wanted(&work)) visit_all(&work, changed);
  if (wanted(&work) && changed) write_record(&work, &record);
  if (!wanted(&work) && work.problems == 0) unlinkat(disk, TRUST_RECORD, 0);
  bool good = !wanted(&work) || work.primary != NULL;
  if (!good) log_problem("trust: no bundle of this root has the egress authority");
  else if (wanted(&work)) log_note("trust: the egress authority is in %d bundles of the image, %s, with %d problems", work.bundles, work.primary, work.problems);
  else log_note("trust: the egress authority was taken out, with %d problems", work.problems);
  free(work.block);
  free(before);
  return good;
}
