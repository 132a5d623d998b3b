// The systems that Berth is tried on, each as a root that debootstrap makes.
export interface Suite {
  /** of the distribution, as its archive names it */
  readonly codename: string
  /** packages that are taken from another suite of the same archive, which is added */
  readonly from?: { readonly codename: string, readonly packages: readonly string[] }
  /** whether the system's own Node.js is used; else this host's is */
  readonly ownNode: boolean
}

export const SUITES = {
  // Its own Node.js is 18.
  bookworm: { codename: 'bookworm', ownNode: false },
  'bookworm-backports': { codename: 'bookworm', from: { codename: 'bookworm-backports', packages: ['qemu-system-x86'] }, ownNode: false },
  // Its own Node.js, 20.19.2, is built with a libuv that may use io_uring, and so lets no program of it give up root: berth-egress is started as its user there.
  trixie: { codename: 'trixie', ownNode: false },
  testing: { codename: 'testing', ownNode: true }
} as const satisfies Readonly<Record<string, Suite>>

export type SuiteName = keyof typeof SUITES

export function isSuiteName (name: string): name is SuiteName {
  return Object.hasOwn(SUITES, name)
}
