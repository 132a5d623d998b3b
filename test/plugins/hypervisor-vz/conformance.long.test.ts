// The driver for macOS on a host that is one. Berth's tests have never run there.
import t from 'tap'
import { elsewhere } from '../../../plugins/hypervisor-vz/probe.ts'
import { hypervisorConformance } from '../../contracts/hypervisor.ts'
import { createVzDriver } from '../../../plugins/hypervisor-vz/driver.ts'
import { commands, guest, guestSystem, makeMachines } from '../hypervisor-qemu/machine.ts'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HypervisorDriver } from '../../../core/library/hypervisor.ts'
import { config } from './machine.ts'

export async function makeDriver (): Promise<HypervisorDriver> {
  return createVzDriver(config, { commands, guest: { system: guestSystem }, folder: join(tmpdir(), 'berth-hypervisor-vz'), onError: (error) => { throw error } })
}

const reason = elsewhere(process.platform)
if (reason === undefined) {
  const machines = await makeMachines()
  t.teardown(() => machines.remove())
  await hypervisorConformance(t, { module: new URL(import.meta.url), makeDriver, guest, makeMachine: machines.make })
} else {
  t.plan(0, reason)
}
