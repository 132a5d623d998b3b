// berth-jail: shows files to a jailed VMM under names of its root, by bind mounts that are in its own mount namespace alone: they end with it, whatever becomes of the server.
// usage, in the VM's run folder, which has a link of that name to each file:
//   berth-jail start ROOT NAME... -- JAILER ARGUMENT...   becomes the jailer, in a namespace that shows the files
//   berth-jail show PID NAME                              shows a running VMM what the link names now, in place of what it named before
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#define OPEN_TREE_CLOEXEC O_CLOEXEC
#endif
#ifndef MOVE_MOUNT_F_EMPTY_PATH
#define MOVE_MOUNT_F_EMPTY_PATH 4
#endif

enum { USAGE = 2, FAILED = 126, LOCK = 3, PATH_BYTES = 4096 };

static int fail(const char *what) {
  dprintf(STDERR_FILENO, "berth-jail: %s: %s\n", what, strerror(errno));
  return FAILED;
}

// Mounts need something to be on. Nobody else is in the folder yet.
static int show_first(const char *root, const char *name) {
  char path[PATH_BYTES];
  if (snprintf(path, sizeof path, "%s/%s", root, name) >= (int)sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  close(fd);
  return mount(name, path, NULL, MS_BIND, NULL);
}

static int start(int argc, char **argv) {
  const char *root = argv[2];
  // What is mounted here is not mounted outside; what is unmounted outside is not held here.
  if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0) return fail("a mount namespace");
  // The jail has device nodes and a program, also where the file system of VMs is mounted without either.
  if (mount(root, root, NULL, MS_BIND, NULL) < 0 || mount(NULL, root, NULL, MS_REMOUNT | MS_BIND | MS_NOSUID, NULL) < 0) return fail(root);
  int next = 3;
  for (; next < argc && strcmp(argv[next], "--") != 0; next++) {
    if (show_first(root, argv[next]) < 0) return fail(argv[next]);
  }
  if (next + 1 >= argc) return USAGE;
  // The jailer closes all descriptors but the first three, and the lock on the memory file must last as long as the VMM: it becomes its input, with nothing left to read.
  if (fcntl(LOCK, F_GETFD) >= 0 && (lseek(LOCK, 0, SEEK_END) < 0 || dup2(LOCK, STDIN_FILENO) < 0)) return fail("the lock");
  execv(argv[next + 1], argv + next + 1);
  return fail(argv[next + 1]);
}

static int show(const char *pid, const char *name) {
  char root_path[64], namespace_path[64];
  snprintf(root_path, sizeof root_path, "/proc/%s/root", pid);
  snprintf(namespace_path, sizeof namespace_path, "/proc/%s/ns/mnt", pid);
  int file = (int)syscall(SYS_open_tree, AT_FDCWD, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (file < 0) return fail(name);
  int root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int namespace = open(namespace_path, O_RDONLY | O_CLOEXEC);
  if (root < 0 || namespace < 0 || setns(namespace, CLONE_NEWNS) < 0 || fchdir(root) < 0) return fail("the VMM's namespace");
  // What the VMM has open it keeps. Nothing is mounted there when an earlier call was cut off here. No link of the VMM's is followed.
  if (umount2(name, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL) return fail(name);
  if (syscall(SYS_move_mount, file, "", AT_FDCWD, name, MOVE_MOUNT_F_EMPTY_PATH) < 0) return fail(name);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 4 && strcmp(argv[1], "start") == 0) return start(argc, argv);
  if (argc == 4 && strcmp(argv[1], "show") == 0) return show(argv[2], argv[3]);
  return USAGE;
}
