// The pinned release of each VMM, and the names of its files. There are no checksums here: a file is checked against the one published beside it.

export interface Release {
  /** `owner/name` on GitHub */
  readonly repository: string
  readonly tag: string
  /** name of the file for a processor, in the form of `uname -m` */
  readonly asset: (machine: string) => string
  /** the programs in an archive: their names inside it, and the names under which they are installed */
  readonly members?: (machine: string) => Readonly<Record<string, string>>
  /** the program that prints the version */
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
