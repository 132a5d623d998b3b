// Which hypervisors have a conformance suite, and the files that run it.
import { hypervisorNames } from '../../helpers/hypervisor-names.ts'

export interface Suite {
  /** with the VMM itself; prints a plan of nothing, with the reason, where that is not */
  readonly real: URL
  /** against a double of its protocol */
  readonly double?: URL
}

const at = (path: string): URL => new URL(`../../plugins/hypervisor-${path}.js`, import.meta.url)

const SUITES: Readonly<Record<string, Suite>> = {
  'cloud-hypervisor': { real: at('cloud-hypervisor/conformance.long.test'), double: at('cloud-hypervisor/conformance-double.long.test') },
  firecracker: { real: at('firecracker/conformance.long.test'), double: at('firecracker/conformance-double.long.test') },
  qemu: { real: at('qemu/conformance') },
  'qemu-microvm': { real: at('qemu-microvm/conformance') },
  vz: { real: at('vz/conformance.long.test'), double: at('vz/conformance-double.long.test') }
}

/** Of all hypervisors that Berth has a driver for; undefined: there is no suite of it. */
export const DRIVERS: ReadonlyMap<string, Suite | undefined> = new Map(hypervisorNames.map((name) => [name, SUITES[name]]))
