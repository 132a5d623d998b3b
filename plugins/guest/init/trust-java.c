// The authorities for Java: its store is made from the bundle, and again whenever the bundle has changed. The store has the bundle's modification time, which shows that.
#include "trust-java.h"
#include "java-store.h"
#include "root-files.h"
#include "trust-place.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define PATH TRUST_JAVA_FOLDER "/" TRUST_JAVA

static bool is_of(const struct place *store, const struct place *bundle) {
  const struct timespec *have = &store->facts.st_mtim, *wanted = &bundle->facts.st_mtim;
  return store->exists && S_ISREG(store->facts.st_mode) && have->tv_sec == wanted->tv_sec && have->tv_nsec == wanted->tv_nsec;
}

static int write_store(struct place *store, const struct place *bundle) {
  size_t length, store_length;
  char *text = place_read(bundle, TRUST_FILE_MAX, &length);
  if (text == NULL) return errno;
  char *bytes = java_store(text, length, &store_length);
  int error = bytes == NULL ? errno : 0;
  free(text);
  // Durable: half a store after a power cut would still have the right time.
  if (error == 0) error = place_write(store, bytes, store_length, true);
  free(bytes);
  const struct timespec times[] = { bundle->facts.st_mtim, bundle->facts.st_mtim };
  if (error == 0 && utimensat(store->folder, store->name, times, AT_SYMLINK_NOFOLLOW) < 0) error = errno;
  return error;
}

void trust_java(struct trust_work *work) {
  struct place store, bundle;
  bool wanted = work->trust->certificate != NULL;
  int folder = root_open_folder(work->root, TRUST_JAVA_FOLDER, wanted), error = folder < 0 ? errno : 0;
  if (!wanted) {
    if (error == 0 && unlinkat(folder, TRUST_JAVA, 0) < 0 && errno != ENOENT) trust_problem(work, PATH, errno);
  } else {
    if (error == 0) error = place_in(folder, TRUST_JAVA, &store);
    if (error == 0) error = root_find(work->root, TRUST_FOLDER "/" TRUST_BUNDLE, &bundle);
    if (error == 0) {
      if (!is_of(&store, &bundle)) error = write_store(&store, &bundle);
      close(bundle.folder);
    }
    if (error != 0) trust_problem(work, PATH, error);
  }
  if (folder >= 0) close(folder);
}
