// The fake driver for the conformance cases, importable by a server process that they crash.
import type { HypervisorDriver } from '../../core/library/hypervisor.ts'
import { createFakeDriver } from './driver.ts'

export async function makeDriver (): Promise<HypervisorDriver> {
  return createFakeDriver('vz', () => ({}))
}
