#!/bin/sh
# Boots this system once more, beside itself: systemd as the first process of namespaces of its own, over a copy of / that is thrown away.
# `boot.sh WORK BIND...`; run by `unshare --mount --pid --net --ipc --uts --cgroup --fork`. WORK is an empty folder; each BIND is a folder that is there too.
set -eu
work=$1
shift
mount --make-rprivate /
mount -t tmpfs tmpfs "$work"
mkdir "$work/upper" "$work/work" "$work/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$work/root"
root=$work/root

# This system's own services stay out of it, and what would look for hardware.
find "$root/etc/systemd/system" -name '*.wants' -exec rm -rf {} +
rm -rf "$root/usr/lib/systemd/system-generators" "$root/etc/fstab" "$root/etc/init.d"
mkdir -p "$root/etc/systemd/system"
for unit in systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-modules-load.service systemd-logind.service dbus.socket; do
  ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
# An installation of this very machine is not the one that is tested.
rm -rf "$root/usr/lib/berth" "$root/usr/bin/berth" "$root/etc/berth" "$root/var/lib/berth" "$root/var/lib/berth-egress"
rm -f "$root"/usr/lib/systemd/system/berth* "$root"/etc/systemd/system/berth* "$root/usr/lib/sysusers.d/berth.conf" "$root/usr/lib/tmpfiles.d/berth.conf"

mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty net/tun; do
  mkdir -p "$(dirname "$root/dev/$device")"
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
# They may be file systems of their own.
for folder in "$@"; do
  mkdir -p "$root$folder"
  mount --rbind "$folder" "$root$folder"
done

# Not chroot: whoever is in one can make no user namespace, which the proxy gets.
mkdir "$root/outside"
cd "$root"
pivot_root . outside
umount --lazy /outside
exec env -i container=test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=basic.target --log-target=journal --show-status=no
