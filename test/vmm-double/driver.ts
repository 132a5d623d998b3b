// A driver on its protocol double, also in a server process that the conformance cases crash; and the contract's cases on it.
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pino } from 'pino'
import type { Test } from 'tap'
import type { HypervisorDriver } from '../../core/library/hypervisor.ts'
import type { RestDriverDeps } from '../../core/library/vmm/rest-driver.ts'
import type { RestVmmConfig } from '../../core/library/vmm/settings.ts'
import { StreamLink } from '../../plugins/guest/link/link.ts'
import { hypervisorConformance } from '../contracts/hypervisor.ts'
import { commands } from '../plugins/hypervisor-qemu/machine.ts'
import { doubleProgram, type DoubleName, type DoubleProgram } from './program.ts'

export interface DoubleDriver {
  program (): Promise<DoubleProgram>
  /** a driver as a new server makes it */
  makeDriver (): Promise<HypervisorDriver>
}

export function doubleDriver (name: DoubleName, config: RestVmmConfig, create: (config: RestVmmConfig, deps: RestDriverDeps) => HypervisorDriver): DoubleDriver {
  /** of the process that made it: one that it starts and crashes has the same */
  const variable = `BERTH_TEST_DOUBLE_OF_${name.toUpperCase().replaceAll('-', '_')}`
  let made: Promise<DoubleProgram> | undefined

  async function program (): Promise<DoubleProgram> {
    made ??= doubleProgram(name)
    process.env[variable] = (await made).path
    return await made
  }

  return {
    program,
    async makeDriver () {
      const path = process.env[variable] ?? (await program()).path
      return create({ ...config, binary: path, guestTimeout: '20s', launchTimeout: '20s' }, {
        commands,
        guest: { system: async () => ({ version: 'double', kernel: path }) },
        // Beside it: it goes with it, also what a process has left that was killed.
        folder: join(dirname(path), `driver-${process.pid}`),
        onError: (error) => { throw error },
        kvm: join(path, '../kvm')
      })
    }
  }
}

/** @param module exports `makeDriver` */
export async function conformanceOnDouble (t: Test, module: URL, double: DoubleDriver): Promise<void> {
  const program = await double.program()
  t.teardown(async () => { await program.remove() })
  await hypervisorConformance(t, {
    module,
    makeDriver: double.makeDriver,
    isDouble: true,
    guest: { link: (stream) => new StreamLink(stream, { log: pino({ level: 'silent' }), answerTimeoutMs: 20_000 }) },
    async makeMachine (folder) {
      const overlay = join(folder, 'overlay')
      await writeFile(overlay, 'nothing', { mode: 0o600 })
      // Any file that the VM's user can read: the double looks no further.
      return { vcpus: 1, memoryBytes: 2 ** 27, kernel: { path: program.path, initrd: program.path, arguments: [] }, disks: [{ id: 'overlay', path: overlay, readonly: false }] }
    }
  })
}
