// Host packages: the commands of each, and the oldest version that was tested. Packages that core or several plugins use are listed here; all others in the manifests of the plugins that use them.
// `node dist/setup/host-packages.js` writes those with a `need` where they are needed before anything is compiled, and where no plugin can be loaded.

export interface HostPackage {
  /** its name in Debian */
  readonly name: string
  /** the commands of it that are run */
  readonly commands: readonly string[]
  /** the oldest version that was tested, if the first command prints its own in one stable line */
  readonly oldest?: string
  /** the argument that makes the first command print its version; default: --version */
  readonly versionOption?: string
  /** for which hosts `npm run setup` installs it: every server, one whose machines have networks, or one that runs tests (on others, whoever wants its use installs it); absent: every host has it, or whoever needs it installs it */
  readonly need?: 'server' | 'network' | 'tests'
  /** what a host without it has none of, for the checks of hosts; of Berth's own packages, each with a `need` has it */
  readonly use?: string
  /** a file that proves that it is installed; absent: its first command on the path */
  readonly proof?: string
}

export const SHARED_PACKAGES: readonly HostPackage[] = [
  { name: 'apt', commands: ['apt-get', 'apt-cache'] },
  { name: 'ca-certificates', commands: [], need: 'server', use: 'authorities to trust in', proof: '/etc/ssl/certs/ca-certificates.crt' },
  { name: 'coreutils', commands: ['cat', 'chmod', 'cp', 'dd', 'env', 'nice', 'sync', 'touch'] },
  { name: 'dpkg', commands: ['dpkg-deb'] },
  { name: 'e2fsprogs', commands: ['mkfs.ext4', 'e2fsck', 'debugfs', 'filefrag'], versionOption: '-V', need: 'server', use: 'disks' },
  { name: 'erofs-utils', commands: ['mkfs.erofs'], versionOption: '-V', need: 'server', use: 'images' },
  { name: 'findutils', commands: ['xargs'] },
  { name: 'iproute2', commands: ['ip', 'bridge', 'ss', 'tc'], oldest: '6.1.0', versionOption: '-V', need: 'network', use: 'networks' },
  { name: 'lz4', commands: ['lz4'], need: 'server', use: 'memory that lz4 compresses' },
  { name: 'mariadb-client', commands: ['mariadb', 'mariadb-dump'] },
  { name: 'openssl', commands: ['openssl'], versionOption: 'version', need: 'server', use: 'certificates' },
  { name: 'tar', commands: ['tar'] },
  { name: 'util-linux', commands: ['setpriv', 'unshare', 'nsenter', 'prlimit', 'ionice', 'fallocate', 'flock'] },
  { name: 'xz-utils', commands: ['xz'], need: 'server', use: 'kernels that xz compresses' },
  { name: 'zstd', commands: ['zstd'], need: 'server', use: 'compressed memory' }
]

/** The package that has `file` (a name or a path), when it is known. */
export function packageOf (file: string, packages: readonly HostPackage[]): HostPackage | undefined {
  const name = file.slice(file.lastIndexOf('/') + 1)
  return packages.find(({ commands }) => commands.includes(name))
}
