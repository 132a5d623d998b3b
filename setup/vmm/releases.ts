// Which release of a VMM is pinned, and what its files are called. No checksum stands here: the one that is published beside a file is what it is checked against.

export interface Release {
  /** `owner/name` on GitHub */
  readonly repository: string
  readonly tag: string
  /** name of the file for a processor, as `uname -m` has that */
  readonly asset: (machine: string) => string
  /** programs in it, when it is an archive: how each is called in it, and as what it is installed */
  readonly members?: (machine: string) => Readonly<Record<string, string>>
  /** the program that says the version */
  readonly program: string
  readonly version: string
}

export const RELEASES: Readonly<Record<string, Release>> = {
  firecracker: {
    repository: 'firecracker-microvm/firecracker',
    tag: 'v1.16.1',
    asset: (machine) => `firecracker-v1.16.1-${machine}.tgz`,
    members: (machine) => ({
      [`release-v1.16.1-${machine}/firecracker-v1.16.1-${machine}`]: 'firecracker',
      [`release-v1.16.1-${machine}/jailer-v1.16.1-${machine}`]: 'jailer'
    }),
    program: 'firecracker',
    version: '1.16.1'
  },
  'cloud-hypervisor': {
    repository: 'cloud-hypervisor/cloud-hypervisor',
    tag: 'v53.0',
    asset: (machine) => machine === 'x86_64' ? 'cloud-hypervisor-static' : `cloud-hypervisor-static-${machine}`,
    program: 'cloud-hypervisor',
    version: '53.0'
  }
}
