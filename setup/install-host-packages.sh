#!/bin/sh
# Installs the missing Debian packages for the given needs: install-host-packages.sh NEED...
# It looks for a command on the path, or a file, however that was installed. It never starts a service: the daemons among the packages are used as plain commands.
set -eu
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# need, package, what shows that it is there
#   server      what every machine takes
#   network     networks of machines; a server without them says so in GET /plugins
#   quickstart  the image that quickstart makes of this host's busybox; machines of tests and benchmarks run it, too
#   build       compiles the guest's first process, and the SQLite module
#   tests       tests run their own MariaDB on a private socket, measure networks, serve ingresses, boot a systemd of their own, serve git repositories, set a server's clock, and type in terminals and shells
#   long        the long tier of the tests leads a browser through the pages of the console, and has Prometheus look at the rules in config/
#   systems     makes the roots of other systems to try Berth in
# What Berth runs is known to core and to the manifests of its plugins: `node dist/setup/host-packages.js` writes it here.
of_berth='
server ca-certificates /etc/ssl/certs/ca-certificates.crt
server docker-registry docker-registry
server e2fsprogs mkfs.ext4
server erofs-utils mkfs.erofs
server kmod depmod
server lz4 lz4
server openssl openssl
server qemu-system-x86 qemu-system-x86_64
server skopeo skopeo
server umoci umoci
server xz-utils xz
server zstd zstd
network conntrack conntrack
network dnsmasq-base dnsmasq
network iproute2 ip
network nftables nft
network procps sysctl
tests lego lego
tests nginx nginx
'
list="$of_berth"'
quickstart busybox-static /bin/busybox
build gcc cc
build g++ c++
build make make
build python3 python3
build libc6-dev /usr/include/stdio.h
tests mariadb-server mariadbd
tests iperf3 iperf3
tests pebble pebble
tests curl curl
tests systemd /lib/systemd/systemd
tests git git
tests faketime faketime
tests tmux tmux
tests zsh zsh
tests fish fish
long chromium /usr/bin/chromium
long prometheus /usr/bin/promtool
systems debootstrap debootstrap
'

is_there () {
  case "$1" in
    /*) [ -e "$1" ] ;;
    *) command -v "$1" > /dev/null 2>&1 ;;
  esac
}

missing_of () {
  printf '%s' "$list" | while read -r need package proof; do
    [ "$need" = "$1" ] || continue
    is_there "$proof" || printf ' %s' "$package"
  done
}

missing=''
# A machine runs without these: when they cannot be installed, they are only named.
spare=''
for need in "$@"; do
  case "$need" in
    server | build | quickstart) missing="$missing$(missing_of "$need")" ;;
    network | tests | long | systems) spare="$spare$(missing_of "$need")" ;;
    *) echo "host packages: nothing is known of the need $need" >&2; exit 2 ;;
  esac
done

if [ -z "$missing$spare" ]; then
  echo 'host packages: all present'
  exit 0
fi

give_up () {
  if [ -z "$missing" ]; then
    echo "host packages: $1; going on without:$spare"
    exit 0
  fi
  echo "host packages: missing:$missing$spare; $1" >&2
  exit 1
}

command -v apt-get > /dev/null 2>&1 || give_up 'there is no apt here: install what this system calls them'
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo > /dev/null 2>&1 || give_up "ask for them, or run as root: sh $0 $*"
  exec sudo sh "$0" "$@"
fi
missing="$missing$spare"

work=$(mktemp -d 2> /dev/null || mktemp -d -p /var/tmp)
policy=/usr/sbin/policy-rc.d
made_policy=''
finish () {
  if [ -n "$made_policy" ]; then rm -f "$policy"; fi
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# apt waits for the lock of `install` by itself, but not for that of `update`, which another installer or the system's daily run has for a while.
apt () {
  tries=300
  until LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" > "$work/log" 2>&1; do
    tries=$((tries - 1))
    if [ "$tries" -eq 0 ] || ! grep -q '^E: Could not get lock' "$work/log"; then
      echo "host packages: apt-get $1 failed, with$missing to install:" >&2
      tail -n 20 "$work/log" >&2
      exit 1
    fi
    sleep 1
  done
}

echo "host packages: installing$missing (waits for apt)"
apt update
# Debian starts daemons when it installs them unless this file says no. An administrator's own file stays as it is.
if [ ! -e "$policy" ]; then
  made_policy=1
  printf '#!/bin/sh\nexit 101\n' > "$policy"
  chmod 755 "$policy"
fi
# The names are one word each, so splitting them is wanted here.
# shellcheck disable=SC2086
apt install --no-install-recommends $missing

# Not started now, and not at the next boot either. Only for packages that this run has installed.
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
