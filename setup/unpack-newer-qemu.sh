#!/bin/sh
# Unpacks the QEMU of Debian 12's backports into the folder OUTPUT, for tests of what Debian 12's own cannot do. Nothing is installed, and no list of packages of this host is changed.
# usage: unpack-newer-qemu.sh OUTPUT
# Afterwards OUTPUT/qemu-system-x86_64 is it. Does nothing where it is there already, and says why where it cannot be had.
set -eu
output=$1
[ -x "$output/qemu-system-x86_64" ] && exit 0
release=bookworm
keys=/usr/share/keyrings/debian-archive-keyring.gpg
packages='qemu-system-x86 qemu-system-common qemu-system-data seabios'

give_up () {
  echo "newer qemu: $1; going on without" >&2
  exit 1
}

# shellcheck disable=SC1091
[ "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" = "$release" ] || give_up "this system is not Debian's $release"
[ -e "$keys" ] || give_up "there is no $keys"
mkdir -p "$(dirname "$output")"
work=$(mktemp -d)
trap 'rm -rf "$work" "$output.new"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# apt drops its rights for a download, and must be able to write there.
chmod 755 "$work"
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/debs" "$work/none"
# Where this host gets its packages from, as setup/systems/mirror.ts asks it.
mirror=$(apt-get indextargets --format '$(LABEL) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' | awk '$1 == "Debian" && $2 == "main" { print $3; exit }')
[ -n "$mirror" ] || give_up 'apt knows no archive of Debian'
echo "deb [signed-by=$keys] $mirror $release-backports main" > "$work/sources.list"
apt () {
  (cd "$work/debs" && apt-get -q -y -o Acquire::Retries=3 -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work" -o "Dir::Etc::SourceList=$work/sources.list" -o "Dir::Etc::SourceParts=$work/none" "$@") > "$work/log" 2>&1 || {
    tail -n 3 "$work/log" >&2
    give_up "apt-get $1 failed"
  }
}
apt update
# shellcheck disable=SC2086
apt download $packages
rm -rf "$output.new"
mkdir -p "$output.new"
for package in "$work"/debs/*.deb; do dpkg -x "$package" "$output.new"; done
rm -rf "$output.new/usr/share/doc" "$output.new/usr/share/man"
# Its own data and modules, wherever the folder stands.
cat > "$output.new/qemu-system-x86_64" <<'WRAPPER'
#!/bin/sh
here=${0%/*}/usr
QEMU_MODULE_DIR=$here/lib/x86_64-linux-gnu/qemu exec "$here/bin/qemu-system-x86_64" -L "$here/share/qemu" -L "$here/share/seabios" "$@"
WRAPPER
chmod 755 "$output.new/qemu-system-x86_64"
"$output.new/qemu-system-x86_64" --version > /dev/null || give_up 'it does not run here'
rm -rf "$output"
mv "$output.new" "$output"
