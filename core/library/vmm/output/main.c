// berth-vm-output: becomes a VMM that cannot write its guest's output to files, and leaves a process behind that does.
// usage: berth-vm-output [--as UID:GID] CONTROL CONSOLE [LINK=SOCKET]... -- VMM ARGUMENT...
// Run in the working folder. CONSOLE and each LINK are names of links to the files that are appended to: the VMM's own output goes to the first, and what comes over the connections to
// SOCKET to the others. CONTROL is a socket; each byte that is sent to it opens all links anew, and is answered by one byte: 0, or errno.
// --as: run by root, for a VMM that becomes that user by itself. Files and sockets are opened and made as the user, whom the process that is left behind becomes for good.
// The process that is left behind ends after the VMM, once it has written the rest of the output. It needs no server.
#include "files.h"
#include "keep.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 4 };

static int fail(const char *what) {
  dprintf(STDERR_FILENO, "berth-vm-output: %s: %s\n", what, strerror(errno));
  return 126;
}

static int listen_at(const char *name) {
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  if (strlen(name) >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(address.sun_path, name);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, BACKLOG) < 0) return -1;
  return fd;
}

// For as long as it takes: the saved user stays root.
static bool act_as(uid_t uid, gid_t gid) {
  return setgroups(0, NULL) == 0 && setegid(gid) == 0 && seteuid(uid) == 0;
}

static bool act_as_root(void) { return seteuid(0) == 0 && setegid(0) == 0; }

// For good: with its user root's process loses all capabilities.
static bool become(uid_t uid, gid_t gid) {
  return act_as_root() && setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0;
}

int main(int argc, char **argv) {
  static struct keeper keeper;
  unsigned uid = 0, gid = 0;
  bool as_user = argc > 2 && strcmp(argv[1], "--as") == 0;
  if (as_user) {
    if (sscanf(argv[2], "%u:%u", &uid, &gid) != 2) return 2;
    if (!act_as(uid, gid)) return fail("--as");
    argc -= 2;
    argv += 2;
  }
  if (argc < 5) return 2;
  keeper.control = listen_at(argv[1]);
  if (keeper.control < 0) return fail(argv[1]);
  if (!file_open(&keeper.files[keeper.file_count++], argv[2])) return fail(argv[2]);
  int next = 3;
  for (; next < argc && strcmp(argv[next], "--") != 0; next++) {
    char *socket_name = strchr(argv[next], '=');
    if (socket_name == NULL || keeper.file_count == KEEPER_FILES) return 2;
    *socket_name++ = 0;
    struct file *file = &keeper.files[keeper.file_count++];
    if (!file_open(file, argv[next])) return fail(argv[next]);
    file->listener = listen_at(socket_name);
    if (file->listener < 0) return fail(socket_name);
  }
  if (next + 1 >= argc) return 2;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) return fail("pipe");
  pid_t child = fork();
  if (child < 0) return fail("fork");
  if (child == 0) {
    if (as_user && !become(uid, gid)) return fail("--as");
    keeper.console = ends[0];
    return keep(&keeper);
  }
  if (dup2(ends[1], STDOUT_FILENO) < 0 || dup2(ends[1], STDERR_FILENO) < 0) return fail("pipe");
  if (as_user && !act_as_root()) return fail("--as");
  execvp(argv[next + 1], argv + next + 1);
  return fail(argv[next + 1]);
}
