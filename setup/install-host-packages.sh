#!/bin/sh
# Installs the Debian packages that Berth uses, and only those that are missing. This file is the only list of them.
# It never starts a service: the daemons among them are used as plain commands.
set -eu

# Used by the server at run time.
packages='
ca-certificates
busybox-static
conntrack
dnsmasq-base
docker-registry
e2fsprogs
erofs-utils
iproute2
kmod
lz4
nftables
openssl
procps
qemu-system-x86
skopeo
umoci
xz-utils
zstd
'
# Used by the tests only: they run their own MariaDB on a private socket, measure networks, give curl to guests, boot a systemd of their own,
# and serve git repositories.
packages="$packages mariadb-server iperf3 curl systemd git"

# Build tools: any compiler that is already here will do.
command -v cc > /dev/null 2>&1 || packages="$packages gcc"
command -v c++ > /dev/null 2>&1 || packages="$packages g++"
command -v make > /dev/null 2>&1 || packages="$packages make"
command -v python3 > /dev/null 2>&1 || packages="$packages python3"
packages="$packages libc6-dev"

if ! command -v dpkg-query > /dev/null 2>&1; then
  echo 'host packages: this script needs Debian or a system with apt; install the packages listed in it by hand' >&2
  exit 1
fi

missing=''
for package in $packages; do
  case "$(dpkg-query --show --showformat='${Status}' "$package" 2> /dev/null || true)" in
    'install ok installed') ;;
    *) missing="$missing $package" ;;
  esac
done

if [ -z "$missing" ]; then
  echo 'host packages: all present'
  exit 0
fi

if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo > /dev/null 2>&1; then
    exec sudo sh "$0"
  fi
  echo "host packages: missing:$missing" >&2
  echo "host packages: run this as root: sh '$0'" >&2
  exit 1
fi

work=$(mktemp -d)
policy=/usr/sbin/policy-rc.d
made_policy=''
finish () {
  if [ -n "$made_policy" ]; then rm -f "$policy"; fi
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Debian starts daemons when it installs them unless this file says no. An administrator's own file stays as it is.
if [ ! -e "$policy" ]; then
  made_policy=1
  printf '#!/bin/sh\nexit 101\n' > "$policy"
  chmod 755 "$policy"
fi

apt () {
  DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" > "$work/log" 2>&1 || {
    echo "host packages: apt-get $1 failed:" >&2
    tail -n 20 "$work/log" >&2
    exit 1
  }
}

echo "host packages: installing$missing"
apt update
# The names are one word each, so splitting them is wanted here.
# shellcheck disable=SC2086
apt install --no-install-recommends $missing

# Not started now, and not started by the next boot either. Only for what this run has installed.
for package in $missing; do
  case "$package" in
    docker-registry | iperf3 | mariadb-server)
      service=${package%-server}
      if command -v systemctl > /dev/null 2>&1; then
        systemctl disable "$service.service" > "$work/log" 2>&1 || tail -n 3 "$work/log" >&2
      elif command -v update-rc.d > /dev/null 2>&1; then
        update-rc.d "$service" disable > "$work/log" 2>&1 || tail -n 3 "$work/log" >&2
      fi
      ;;
  esac
done
echo 'host packages: installed'
