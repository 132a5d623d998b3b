// What both forms of the fake driver give to the conformance cases.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { StreamLink } from '../../plugins/guest/link/link.ts'
import type { HypervisorFixture } from '../contracts/hypervisor.ts'

export const guest: HypervisorFixture['guest'] = { link: (stream) => new StreamLink(stream, { log: pino({ level: 'silent' }), answerTimeoutMs: 5000 }) }

/** Nothing of it is booted. */
export const makeMachine: HypervisorFixture['makeMachine'] = async (folder) => {
  const path = join(folder, 'vmlinux')
  await writeFile(path, 'no kernel', { mode: 0o600 })
  const disk = join(folder, 'overlay')
  await writeFile(disk, 'no file system', { mode: 0o600 })
  return { vcpus: 1, memoryBytes: 2 ** 27, kernel: { path, initrd: path, arguments: [] }, disks: [{ id: 'overlay', path: disk, readonly: false }] }
}
