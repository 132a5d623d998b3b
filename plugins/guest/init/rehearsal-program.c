// The program of a rehearsal: this executable again; it makes the system calls that programs usually make when they start.
#include "rehearsal-program.h"
#include "files.h"
#include "protocol.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SCRIPT "/rehearsal.sh"
// Of the image, which may have none.
#define DATA "/rehearsal.data"

enum { PART = 65536, PAGE = 4096 };

static bool copied;

static bool copy_self(void) {
  struct stat facts;
  int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  int to = open(REHEARSAL_PROGRAM, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
  bool good = from >= 0 && to >= 0 && fstat(from, &facts) == 0;
  for (off_t left = good ? facts.st_size : 0; left > 0 && good;) {
    ssize_t copied = sendfile(to, from, NULL, (size_t)left);
    good = copied > 0;
    left -= copied;
  }
  int error = errno;
  if (from >= 0) close(from);
  if (to >= 0) close(to);
  errno = error;
  return good;
}

static bool write_script(void) {
  static const char text[] = "#!" REHEARSAL_PROGRAM " scene\n";
  int fd = open(SCRIPT, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
  bool good = fd >= 0 && write_all(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  return good;
}

bool rehearsal_program_place(struct failure *failure) {
  if ((access(REHEARSAL_PROGRAM, X_OK) == 0 || (copied = copy_self())) && write_script()) return true;
  return fail(failure, errno, EXIT_BOOT_FAILED, "the rehearsal's program cannot be made: %s", strerror(errno));
}

void rehearsal_program_wipe(void) {
  static const char zeros[PART];
  struct stat facts;
  int fd = copied ? open(REHEARSAL_PROGRAM, O_WRONLY | O_CLOEXEC) : -1;
  if (fd < 0) return;
  for (off_t left = fstat(fd, &facts) == 0 ? facts.st_size : 0; left > 0; left -= PART) {
    if (!write_all(fd, zeros, left < PART ? (size_t)left : PART)) break;
  }
  close(fd);
  // The next rehearsal on this disk makes another one.
  unlink(REHEARSAL_PROGRAM);
}

static void read_folder(const char *path) {
  DIR *folder = opendir(path);
  if (folder == NULL) return;
  while (readdir(folder) != NULL);
  closedir(folder);
}

// As a loader does with a library.
static void map_files(void) {
  char head[832];
  struct stat facts;
  int fd = open(REHEARSAL_PROGRAM, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, head, sizeof head) < 0 || pread(fd, head, sizeof head, PART) < 0 || fstat(fd, &facts) < 0) return;
  char *whole = mmap(NULL, 4 * PART, PROT_READ, MAP_PRIVATE, fd, 0);
  char *data = whole == MAP_FAILED ? whole : mmap(whole + PART, PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, PART);
  close(fd);
  if (data == MAP_FAILED) return;
  for (int at = 0; at < PART; at += 4096) data[at] = 1;
  mprotect(data, PART, PROT_READ);
  munmap(whole, 4 * PART);
  char *memory = mmap(NULL, 4 * PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  memset(memory, 1, 4 * PART);
  munmap(memory, 4 * PART);
}

// As a program does with its own file, none of which is in memory yet: first in order, so that the kernel reads ahead, then here and there.
static void read_image(void) {
  char head[832];
  struct stat facts;
  int fd = open(DATA, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (read(fd, head, sizeof head) > 0 && fstat(fd, &facts) == 0 && facts.st_size >= 2 * PART) {
    size_t size = (size_t)facts.st_size;
    volatile char *whole = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (whole != MAP_FAILED) {
      for (size_t at = 0; at < size / 2; at += PAGE) (void)whole[at];
      for (size_t at = size - PAGE; at >= size / 2; at -= PART / 2) (void)whole[at];
      munmap((void *)whole, size);
    }
  }
  close(fd);
}

static void look_around(void) {
  char text[256];
  struct stat facts;
  struct winsize window;
  int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && read(fd, text, sizeof text) > 0) close(fd);
  if (getrandom(text, 16, 0) < 0 || readlink("/proc/self/exe", text, sizeof text) < 0 || getcwd(text, sizeof text) == NULL) return;
  fd = open("/etc/hosts", O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && read(fd, text, sizeof text) > 0) close(fd);
  if (access("/etc/ld.so.preload", R_OK) == 0 || stat("/etc", &facts) < 0 || lstat("/usr/lib", &facts) == 0) read_folder("/etc");
  ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
  read_folder("/");
  mkdir("/tmp/rehearsal", 0700);
  rmdir("/tmp/rehearsal");
}

static void on_signal(int number) {
  (void)number;
}

static void wait_a_little(void) {
  struct sigaction action = { .sa_handler = on_signal }, before;
  struct timespec pause = { .tv_nsec = 1000000 };
  sigaction(SIGUSR1, &action, &before);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &before, NULL);
  nanosleep(&pause, NULL);
}

static void talk(void) {
  struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t size = sizeof here;
  char text[16];
  int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int on = 1, poll = epoll_create1(EPOLL_CLOEXEC), peer = -1;
  struct epoll_event event = { .events = EPOLLIN };
  setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(server, (struct sockaddr *)&here, size) == 0 && listen(server, 1) == 0 && getsockname(server, (struct sockaddr *)&here, &size) == 0 &&
      connect(client, (struct sockaddr *)&here, size) == 0 && epoll_ctl(poll, EPOLL_CTL_ADD, server, &event) == 0 &&
      epoll_wait(poll, &event, 1, 1000) == 1 && (peer = accept4(server, NULL, NULL, SOCK_CLOEXEC)) >= 0 && send(client, "here", 4, MSG_NOSIGNAL) == 4) {
    recv(peer, text, sizeof text, 0);
  }
  for (int *fd = (int[]){ peer, client, server, poll, -2 }; *fd != -2; fd++) {
    if (*fd >= 0) close(*fd);
  }
}

static bool run_script(void) {
  int ends[2], wait_status;
  char text[16];
  if (pipe2(ends, O_CLOEXEC) < 0) return false;
  pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execl(SCRIPT, SCRIPT, (char *)NULL);
    _exit(1);
  }
  close(ends[1]);
  bool said = read(ends[0], text, sizeof text) > 0;
  close(ends[0]);
  return pid > 0 && waitpid(pid, &wait_status, 0) == pid && wait_status == 0 && said;
}

int rehearsal_program_run(const char *argument) {
  if (strcmp(argument, "scene") == 0) return write_all(STDOUT_FILENO, "scene\n", 6) ? 0 : 1;
  if (strcmp(argument, "rehearsal") != 0) return -1;
  read_image();
  map_files();
  look_around();
  wait_a_little();
  talk();
  return run_script() && write_all(STDOUT_FILENO, "rehearsal\n", 10) ? 0 : 1;
}
