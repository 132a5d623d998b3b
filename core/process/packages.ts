// Which Debian package brings a host command: the one table behind every "command missing" message.

const PACKAGE_BY_COMMAND: Readonly<Record<string, string>> = {
  apt: 'apt',
  'apt-get': 'apt',
  busybox: 'busybox-static',
  bridge: 'iproute2',
  cc: 'gcc',
  conntrack: 'conntrack',
  cpio: 'cpio',
  dnsmasq: 'dnsmasq-base',
  'docker-registry': 'docker-registry',
  depmod: 'kmod',
  'dpkg-deb': 'dpkg',
  'dump.erofs': 'erofs-utils',
  e2fsck: 'e2fsprogs',
  'fsck.erofs': 'erofs-utils',
  gcc: 'gcc',
  ionice: 'util-linux',
  ip: 'iproute2',
  lego: 'lego',
  lz4: 'lz4',
  mariadb: 'mariadb-client',
  'mariadb-dump': 'mariadb-client',
  mariadbd: 'mariadb-server',
  'mkfs.erofs': 'erofs-utils',
  'mkfs.ext4': 'e2fsprogs',
  mke2fs: 'e2fsprogs',
  nft: 'nftables',
  nice: 'coreutils',
  nsenter: 'util-linux',
  nginx: 'nginx',
  openssl: 'openssl',
  'qemu-img': 'qemu-utils',
  'qemu-system-x86_64': 'qemu-system-x86',
  prlimit: 'util-linux',
  resize2fs: 'e2fsprogs',
  setpriv: 'util-linux',
  skopeo: 'skopeo',
  ss: 'iproute2',
  sysctl: 'procps',
  tar: 'tar',
  tc: 'iproute2',
  umoci: 'umoci',
  unshare: 'util-linux',
  xz: 'xz-utils',
  zstd: 'zstd'
}

/** The package that brings `file` (a name or a path), when it is known. */
export function packageOf (file: string): string | undefined {
  const name = file.slice(file.lastIndexOf('/') + 1)
  return Object.hasOwn(PACKAGE_BY_COMMAND, name) ? PACKAGE_BY_COMMAND[name] : undefined
}
