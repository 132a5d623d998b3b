// A launch and a restore by Cloud Hypervisor, on its protocol double: what is there when another server may take the VM over, and what its image says.
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { VmSpec } from '../../../core/library/hypervisor.ts'
import { imageFactsOf } from '../../../core/library/vmm/handle.ts'
import { createCloudHypervisorDriver } from '../../../plugins/hypervisor-cloud-hypervisor/driver.ts'
import { doubleProgram } from '../../vmm-double/program.ts'
import { commands } from '../hypervisor-qemu/machine.ts'
import { double, makeDriver } from './double.ts'
import { config } from './machine.ts'

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

await t.test('a Cloud Hypervisor that was upgraded since it was probed is launched as what it is: the images of its VM name the version that runs', async (t) => {
  const program = await doubleProgram('cloud-hypervisor', { BERTH_DOUBLE_VERSION: '54.0.0' })
  const directory = await mkdtemp(join(tmpdir(), 'berth-vm-'))
  t.teardown(async () => {
    await rm(directory, { recursive: true, force: true })
    await program.remove()
  })
  await chmod(directory, 0o711)
  const file = (name: string): string => join(directory, name)
  const files = { vmm: file('vmm'), output: file('output'), report: file('report') }
  for (const path of [...Object.values(files), file('before')]) await writeFile(path, '')
  await writeFile(file('ch'), `#!/bin/sh\n[ "$1" = --version ] && [ -e '${file('before')}' ] && exec echo 'cloud-hypervisor v53.0.0'\nexec '${program.path}' "$@"\n`, { mode: 0o755 })
  const spec: VmSpec = { id: 'x', directory, vcpus: 1, memoryBytes: 2 ** 27, kernel: { path: program.path, initrd: program.path, arguments: [] }, disks: [], files }
  const driver = createCloudHypervisorDriver({ ...config, binary: file('ch') }, {
    commands, folder: file('own'), kvm: program.kvm, guest: { system: async () => await Promise.resolve({ kernel: program.path, version: 'double' }) }, onError: (error) => { throw error }
  })
  t.match(await driver.probe(), { supported: true, version: '53.0.0' })
  await rm(file('before'))
  const vm = await driver.launch(spec)
  t.teardown(() => vm.kill())
  t.equal(vm.handle.vmmVersion, '54.0.0')
  t.match(Object.values(imageFactsOf(vm.handle)?.shape ?? {}).join(), /54\.0\.0/)
  t.equal((await driver.probe()).version, '54.0.0')
})
