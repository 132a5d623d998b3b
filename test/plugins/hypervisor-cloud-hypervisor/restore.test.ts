// A restore by Cloud Hypervisor, on its protocol double: what is there when another server may take the VM over.
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { VmSpec } from '../../../core/library/hypervisor.ts'
import { double, makeDriver } from './double.ts'

await t.test('trap, a guest\'s reset is answered by another boot: a restored VM has no kernel any more when its server may be killed, so that it ends with its guest', async (t) => {
  const { path, remove } = await double.program()
  const directory = await mkdtemp(join(tmpdir(), 'berth-vm-'))
  t.teardown(async () => {
    await rm(directory, { recursive: true, force: true })
    await remove()
  })
  const [vmm, output, report, disk, memory, statePath] = ['vmm', 'output', 'report', 'disk', 'memory', 'state'].map((name) => join(directory, name)) as [string, string, string, string, string, string]
  for (const file of [vmm, output, report, disk]) await writeFile(file, '')
  const spec: VmSpec = {
    id: 'x', directory, vcpus: 1, memoryBytes: 2 ** 27, kernel: { path, initrd: path, arguments: [] }, disks: [{ id: 'root', path: disk, readonly: false }], files: { vmm, output, report }
  }
  const driver = await makeDriver()
  const vm = await driver.launch(spec)
  t.teardown(() => vm.kill())
  const image = await vm.imaging?.capture({ statePath, memoryPath: memory })
  await vm.kill()
  if (image === undefined) throw new Error('it makes no images')
  let there: string[] = []
  const restored = await driver.imaging?.restore({ ...spec, memory: { path: memory, sharing: 'private' } }, image, statePath, {
    beforeRun: async () => { there = await readdir(join(directory, 'cloud-hypervisor')) }
  })
  t.teardown(() => restored?.kill())
  t.ok(there.includes('disk-root'))
  t.same(there.filter((name) => ['kernel', 'initrd'].includes(name)), [])
})
