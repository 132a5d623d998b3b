// Host packages: the commands of each, and the oldest version that was tested. Packages that core or several plugins use are listed here; all others in the manifests of the plugins that use them.

export interface HostPackage {
  /** its name in Debian */
  readonly name: string
  /** the commands of it that are run */
  readonly commands: readonly string[]
  /** the oldest version that was tested, if the first command prints its own in one stable line */
  readonly oldest?: string
  /** for which hosts `npm run setup` installs it: every server, one whose machines have networks, or one that runs tests; absent: every host has it, or whoever needs it installs it */
  readonly need?: 'server' | 'network' | 'tests'
  /** a file that proves that it is installed; absent: its first command on the path */
  readonly proof?: string
}

export const SHARED_PACKAGES: readonly HostPackage[] = [
  { name: 'apt', commands: ['apt-get', 'apt'] },
  { name: 'ca-certificates', commands: [], need: 'server', proof: '/etc/ssl/certs/ca-certificates.crt' },
  { name: 'coreutils', commands: ['nice', 'dd'] },
  { name: 'dpkg', commands: ['dpkg-deb'] },
  { name: 'e2fsprogs', commands: ['mkfs.ext4', 'mke2fs', 'e2fsck', 'resize2fs', 'filefrag'], need: 'server' },
  { name: 'erofs-utils', commands: ['mkfs.erofs', 'fsck.erofs', 'dump.erofs'], need: 'server' },
  { name: 'findutils', commands: ['xargs'] },
  { name: 'iproute2', commands: ['ip', 'bridge', 'ss', 'tc'], oldest: '6.1.0', need: 'network' },
  { name: 'lz4', commands: ['lz4'], need: 'server' },
  { name: 'mariadb-client', commands: ['mariadb', 'mariadb-dump'] },
  { name: 'openssl', commands: ['openssl'], need: 'server' },
  { name: 'tar', commands: ['tar'] },
  { name: 'util-linux', commands: ['setpriv', 'unshare', 'nsenter', 'prlimit', 'ionice'] },
  { name: 'xz-utils', commands: ['xz'], need: 'server' },
  { name: 'zstd', commands: ['zstd'], need: 'server' }
]

/** The package that has `file` (a name or a path), when it is known. */
export function packageOf (file: string, packages: readonly HostPackage[]): HostPackage | undefined {
  const name = file.slice(file.lastIndexOf('/') + 1)
  return packages.find(({ commands }) => commands.includes(name))
}
