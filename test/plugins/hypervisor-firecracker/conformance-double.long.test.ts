// The Firecracker driver keeps the contract against a protocol double, which judges each of its requests. That proves nothing about Firecracker: conformance.long.test.ts has the real one.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import t from 'tap'
import { StreamLink } from '../../../plugins/guest/link/link.ts'
import { hypervisorConformance } from '../../contracts/hypervisor.ts'
import { double, makeDriver } from './double.ts'

const program = await double()
t.teardown(async () => { await program.remove() })

await hypervisorConformance(t, {
  module: new URL('double.js', import.meta.url),
  makeDriver,
  guest: { link: (stream) => new StreamLink(stream, { log: pino({ level: 'silent' }), answerTimeoutMs: 20_000 }) },
  async makeMachine (folder) {
    const overlay = join(folder, 'overlay')
    await writeFile(overlay, 'nothing', { mode: 0o600 })
    // Any file that the VM's user can read: the double looks no further.
    return { vcpus: 1, memoryBytes: 2 ** 27, kernel: { path: program.path, initrd: program.path, arguments: [] }, disks: [{ id: 'overlay', path: overlay, readonly: false }] }
  }
})
