// A launch by another QEMU than the one that was probed.
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { VmSpec } from '../../../core/library/hypervisor.ts'
import { imageFactsOf } from '../../../plugins/hypervisor-qemu/handle.ts'
import { config, guestSystem, makeDriver } from './machine.ts'

t.setTimeout(120_000)

await t.test('a QEMU that was upgraded since it was probed is launched as what it is: the images of its VM name the version that runs', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'berth-vm-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  await chmod(directory, 0o711)
  const file = (name: string): string => join(directory, name)
  const files = { vmm: file('vmm'), output: file('output'), report: file('report') }
  for (const path of [...Object.values(files), file('before')]) await writeFile(path, '')
  await writeFile(file('program'), `#!/bin/sh\n[ "$1" = --version ] && [ -e '${file('before')}' ] && exec echo 'QEMU emulator version 5.2.0'\nexec '${config.binary}' "$@"\n`, { mode: 0o755 })
  const { kernel, initrd } = await guestSystem()
  const spec: VmSpec = { id: 'x', directory, vcpus: 1, memoryBytes: 2 ** 27, kernel: { path: kernel, initrd, arguments: [] }, disks: [], files }
  const driver = await makeDriver({ binary: file('program'), accelerator: 'tcg', launchTimeout: '1m' })
  t.match(await driver.probe(), { supported: true, version: '5.2.0' })
  const [key, left] = [await driver.imaging?.key(spec), await readdir(directory)]
  for (const isUpgraded of [false, true]) {
    // Also of one that never says what it is.
    if (isUpgraded) await rm(file('before'))
    const vm = await driver.launch(spec)
    t.teardown(() => vm.kill())
    t.equal(imageFactsOf(vm.handle)?.shape['vmm'], `QEMU ${vm.handle.vmmVersion}`)
    t.not(vm.handle.vmmVersion, '5.2.0')
    t.not(imageFactsOf(vm.handle)?.key, key)
    await vm.kill()
    t.equal((await driver.probe()).version, isUpgraded ? vm.handle.vmmVersion : '5.2.0')
    t.same((await readdir(directory)).sort(), left.filter((name) => !isUpgraded || name !== 'before').sort())
  }
})
