// Which drivers have a conformance suite, and the file that runs it.

export const SUITES: ReadonlyMap<string, URL> = new Map([
  ['qemu', new URL('../../plugins/hypervisor-qemu/conformance.long.test.js', import.meta.url)]
])
