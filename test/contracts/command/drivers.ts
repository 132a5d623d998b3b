// Which drivers have a conformance suite, and the file that runs it.

export const SUITES: ReadonlyMap<string, URL> = new Map([
  ['firecracker', new URL('../../plugins/hypervisor-firecracker/conformance.long.test.js', import.meta.url)],
  ['qemu', new URL('../../plugins/hypervisor-qemu/conformance.long.test.js', import.meta.url)],
  ['qemu-microvm', new URL('../../plugins/hypervisor-qemu-microvm/conformance.js', import.meta.url)]
])
