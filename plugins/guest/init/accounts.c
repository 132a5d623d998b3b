// Turns an image's USER (`name`, `uid`, `name:group`, `uid:gid`) into numbers, from the image's own /etc/passwd and /etc/group.
// Not getpwnam: it would load shared objects for this program's C library out of a foreign image.
#include "accounts.h"
#include "files.h"
#include "protocol.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACCOUNT_FILE_MAX = 1 << 20, COLUMNS_MAX = 7 };

struct text {
  const char *start;
  size_t length;
};

static bool text_is(struct text text, struct text other) {
  return text.length == other.length && memcmp(text.start, other.start, text.length) == 0;
}

// Ids end at 2^31-1: numbers above it include -1, which means "leave as it is" to the kernel.
static bool text_number(struct text text, uint32_t *number) {
  if (text.length == 0 || text.length > 10) return false;
  uint64_t value = 0;
  for (size_t i = 0; i < text.length; i++) {
    if (text.start[i] < '0' || text.start[i] > '9') return false;
    value = value * 10 + (uint64_t)(text.start[i] - '0');
  }
  if (value > INT32_MAX) return false;
  *number = (uint32_t)value;
  return true;
}

// Cuts off the part before `separator`; false when nothing is left.
static bool text_cut(struct text *rest, char separator, struct text *part) {
  if (rest->start == NULL) return false;
  const char *end = memchr(rest->start, separator, rest->length);
  *part = *rest;
  if (end == NULL) {
    rest->start = NULL;
    return true;
  }
  part->length = (size_t)(end - rest->start);
  rest->length -= part->length + 1;
  rest->start = end + 1;
  return true;
}

static bool next_line(struct text *rest, struct text columns[COLUMNS_MAX]) {
  struct text line;
  while (text_cut(rest, '\n', &line)) {
    if (line.length == 0 || line.start[0] == '#') continue;
    for (int i = 0; i < COLUMNS_MAX; i++) columns[i] = (struct text){ "", 0 };
    for (int i = 0; i < COLUMNS_MAX && text_cut(&line, ':', &columns[i]); i++);
    return true;
  }
  return false;
}

static struct text whole(const char *string) {
  return (struct text){ string, string == NULL ? 0 : strlen(string) };
}

// The first line whose name is `wanted`, or whose id is the number `wanted`. A name made of digits wins over an id, as with docker.
static bool find_user(const char *passwd, struct text wanted, struct account *account, struct text *name) {
  uint32_t number;
  bool numeric = text_number(wanted, &number);
  struct text rest = whole(passwd), columns[COLUMNS_MAX];
  while (next_line(&rest, columns)) {
    uint32_t uid, gid;
    if (!text_number(columns[2], &uid) || !text_number(columns[3], &gid)) continue;
    if (!text_is(columns[0], wanted) && !(numeric && uid == number)) continue;
    account->uid = uid;
    account->gid = gid;
    *name = columns[0];
    if (columns[5].length > 0 && columns[5].length < sizeof account->home) {
      memcpy(account->home, columns[5].start, columns[5].length);
      account->home[columns[5].length] = 0;
    }
    return true;
  }
  if (!numeric) return false;
  account->uid = number;
  account->gid = 0;
  return true;
}

static bool find_group(const char *group, struct text wanted, gid_t *gid) {
  uint32_t number;
  bool numeric = text_number(wanted, &number);
  struct text rest = whole(group), columns[COLUMNS_MAX];
  while (next_line(&rest, columns)) {
    uint32_t found;
    if (!text_number(columns[2], &found)) continue;
    if (!text_is(columns[0], wanted) && !(numeric && found == number)) continue;
    *gid = found;
    return true;
  }
  if (numeric) *gid = number;
  return numeric;
}

static bool is_member(struct text members, struct text name) {
  struct text member;
  while (text_cut(&members, ',', &member)) {
    if (text_is(member, name)) return true;
  }
  return false;
}

static void add_memberships(const char *group, struct text name, struct account *account) {
  struct text rest = whole(group), columns[COLUMNS_MAX];
  while (account->group_count < ACCOUNT_GROUPS_MAX && next_line(&rest, columns)) {
    uint32_t gid;
    if (!text_number(columns[2], &gid) || gid == account->gid || !is_member(columns[3], name)) continue;
    account->groups[account->group_count++] = gid;
  }
}

bool account_resolve(const char *spec, const char *passwd, const char *group, struct account *account,
                     struct failure *failure) {
  struct text rest = whole(spec == NULL || spec[0] == 0 ? "0" : spec), user, name = { "", 0 };
  text_cut(&rest, ':', &user);
  if (user.length == 0) user = whole("0");
  account->home[0] = 0;
  if (!find_user(passwd, user, account, &name)) {
    return fail(failure, ENOENT, EXIT_NOT_EXECUTABLE, "there is no user \"%.*s\" in the image's /etc/passwd",
                (int)(user.length > 128 ? 128 : user.length), user.start);
  }
  bool group_given = rest.start != NULL && rest.length > 0;
  if (group_given && !find_group(group, rest, &account->gid)) {
    return fail(failure, ENOENT, EXIT_NOT_EXECUTABLE, "there is no group \"%.*s\" in the image's /etc/group",
                (int)(rest.length > 128 ? 128 : rest.length), rest.start);
  }
  account->groups[0] = account->gid;
  account->group_count = 1;
  if (!group_given && name.length > 0) add_memberships(group, name, account);
  if (account->home[0] != '/') strcpy(account->home, account->uid == 0 ? "/root" : "/");
  return true;
}

bool account_load(const char *spec, struct account *account, struct failure *failure) {
  char *passwd = file_read("/etc/passwd", ACCOUNT_FILE_MAX, NULL);
  char *group = file_read("/etc/group", ACCOUNT_FILE_MAX, NULL);
  bool found = account_resolve(spec, passwd, group, account, failure);
  free(passwd);
  free(group);
  return found;
}
