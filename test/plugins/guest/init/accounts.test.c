// USER of an image against its own passwd and group files, as docker reads it.
#include "accounts.h"
#include "check.h"
#include <string.h>

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n\n# a comment\napp:x:1000:1001:App:/home/app:/bin/sh\n"
                             "123:x:5000:5000::/odd:/bin/sh\nbroken:x:nine:1::/:/bin/sh\nnohome:x:7:7:::\nlong:x:99999999999:1::/:/x\nlast:x:8:8::/last";
static const char group[] = "root:x:0:\napp:x:1001:\nstaff:x:50:app,other\nwheel:x:10:other,app\napps:x:60:apple\nbad:x:-1:app\nself:x:1001:app";

static struct account account;
static struct failure failure;

static bool resolves(const char *spec, uid_t uid, gid_t gid, const char *home, size_t groups) {
  memset(&account, 0xAA, sizeof account);
  return account_resolve(spec, passwd, group, &account, &failure) && account.uid == uid && account.gid == gid &&
         strcmp(account.home, home) == 0 && account.group_count == groups && account.groups[0] == gid;
}

static bool refuses(const char *spec, const char *part) {
  return !account_resolve(spec, passwd, group, &account, &failure) && failure.exit_code == 126 && strstr(failure.message, part) != NULL;
}

int main(void) {
  check(resolves("", 0, 0, "/root", 1), "no user is root");
  check(resolves(NULL, 0, 0, "/root", 1), "no field is root");
  check(resolves("app", 1000, 1001, "/home/app", 3), "a name has its uid, gid, home and further groups");
  check(account.groups[1] == 50 && account.groups[2] == 10, "membership is by whole names");
  check(resolves("1000", 1000, 1001, "/home/app", 3), "a uid that is listed is that user");
  check(resolves("4242", 4242, 0, "/", 1), "a uid that is not listed has gid 0 and home /");
  check(resolves("123", 5000, 5000, "/odd", 1), "a name of digits wins over the uid");
  check(resolves("app:staff", 1000, 50, "/home/app", 1), "a given group replaces all groups");
  check(resolves("app:77", 1000, 77, "/home/app", 1), "a given gid need not be listed");
  check(resolves("4242:4243", 4242, 4243, "/", 1), "both may be plain numbers");
  check(resolves("app:", 1000, 1001, "/home/app", 3), "an empty group is none");
  check(resolves(":staff", 0, 50, "/root", 1), "an empty user before a group is root");
  check(resolves("nohome", 7, 7, "/", 1), "a user without a home has /");
  check(resolves("last", 8, 8, "/last", 1), "the last line needs no line end");
  check(refuses("ghost", "no user \"ghost\""), "an unknown name is refused");
  check(refuses("app:ghost", "no group \"ghost\""), "an unknown group is refused");
  check(refuses("broken", "no user"), "a line with a uid that is no number is none");
  check(refuses("99999999999", "no user"), "a uid above 2^31-1 is refused");
  check(refuses("-1", "no user"), "a negative uid is refused");
  check(refuses("4294967295", "no user"), "the uid that means \"unchanged\" is refused");
  check(account_resolve("5:6", NULL, NULL, &account, &failure) && account.uid == 5 && account.gid == 6, "an image without the files works by numbers");
  return checks_end();
}
