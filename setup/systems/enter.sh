#!/bin/sh
# Runs a command in a root, in mount and process namespaces that end with it: enter.sh ROOT CHECKOUT SCRATCH NODE COMMAND...
# The checkout is mounted below an overlay, so that the system does not change it, and has the root's own `.cache`. NODE is a folder with bin/node to use, or `own`; npm is always this host's.
set -eu
if [ "${BERTH_ENTERED:-}" != yes ]; then
  BERTH_ENTERED=yes exec setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --propagation private -- sh "$0" "$@"
fi
root=$1 checkout=$2 scratch=$3 node=$4
shift 4

# `ip netns` needs `/` to be a mount point.
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=755 tmpfs "$root/run"

mkdir -p "$scratch/upper" "$scratch/work" "$root/berth" "$root/opt/npm" "$root/opt/node" "$root/usr/local/bin"
mount -t overlay -o "lowerdir=$checkout,upperdir=$scratch/upper,workdir=$scratch/work" overlay "$root/berth"

# Downloads for this system stay with it.
mkdir -p "$root/var/cache/berth" "$root/berth/.cache"
mount --bind "$root/var/cache/berth" "$root/berth/.cache"

npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
mount --bind "$npm" "$root/opt/npm"
ln -sfn /opt/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
if [ "$node" != own ]; then
  # With its headers, for compiling against them.
  mkdir -p "$root/opt/node/bin" "$root/opt/node/include/node"
  touch "$root/opt/node/bin/node"
  mount --bind "$node/bin/node" "$root/opt/node/bin/node"
  if [ -d "$node/include/node" ]; then mount --bind "$node/include/node" "$root/opt/node/include/node"; fi
  ln -sfn /opt/node/bin/node "$root/usr/local/bin/node"
fi

# npm reaches its registry there as it does here, with the same authorities and proxies, and finds its earlier downloads. Its other settings belong to this host.
set -- "npm_config_cache=/opt/npm-cache" "$@"
settings=$(npm config get --loglevel=error registry proxy https-proxy noproxy cafile cache)
while IFS='=' read -r name value; do
  case "$name=$value" in
    *=null | *= | *=undefined) ;;
    cache=*)
      mkdir -p "$value" "$root/opt/npm-cache"
      mount --bind "$value" "$root/opt/npm-cache"
      ;;
    cafile=*)
      touch "$root/opt/npm-authorities"
      mount --bind "$value" "$root/opt/npm-authorities"
      set -- "npm_config_cafile=/opt/npm-authorities" "$@"
      ;;
    *=*) set -- "npm_config_$(echo "$name" | tr - _)=$value" "$@" ;;
  esac
done << end
$settings
end
if [ -f "${NODE_EXTRA_CA_CERTS:-}" ]; then
  touch "$root/opt/node-authorities"
  mount --bind "$NODE_EXTRA_CA_CERTS" "$root/opt/node-authorities"
  set -- "NODE_EXTRA_CA_CERTS=/opt/node-authorities" "$@"
fi

cd "$root"
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive \
  TAP_TIMEOUT="${TAP_TIMEOUT:-600}" chroot . sh -c 'cd /berth && exec env "$@"' sh "$@"
