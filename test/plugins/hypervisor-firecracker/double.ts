// The Firecracker driver on its protocol double, importable by a server process that the conformance cases crash.
import { dirname, join } from 'node:path'
import type { HypervisorDriver } from '../../../core/library/hypervisor.ts'
import { createFirecrackerDriver } from '../../../plugins/hypervisor-firecracker/driver.ts'
import { doubleProgram, type DoubleProgram } from '../../vmm-double/program.ts'
import { commands } from '../hypervisor-qemu/machine.ts'
import { config } from './machine.ts'

/** of the process that made it: one that it starts and crashes has the same */
const NAME = 'BERTH_TEST_DOUBLE'
let made: Promise<DoubleProgram> | undefined

export async function double (): Promise<DoubleProgram> {
  made ??= doubleProgram('firecracker')
  const program = await made
  process.env[NAME] = program.path
  return program
}

export async function makeDriver (): Promise<HypervisorDriver> {
  const path = process.env[NAME] ?? (await double()).path
  return createFirecrackerDriver({ ...config, binary: path, guestTimeout: '20s', launchTimeout: '20s' }, {
    commands,
    guest: { system: async () => ({ version: 'double', kernel: path, initrd: path, arguments: [] }) },
    // Beside it: it goes with it, also what a process has left that was killed.
    folder: join(dirname(path), `driver-${process.pid}`),
    onError: (error) => { throw error },
    kvm: join(path, '../kvm')
  })
}
