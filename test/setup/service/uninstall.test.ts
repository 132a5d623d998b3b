import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { testFolder } from '../../helpers/folder.ts'
import { smallCheckout, worldOf, type Checkout } from './small-checkout.ts'

/** A system with an installation. */
async function installed (t: Test): Promise<{ readonly root: string, readonly checkout: Checkout }> {
  const top = testFolder(t, { checkout: {}, root: {} })
  const root = join(top, 'root')
  const checkout = await smallCheckout(join(top, 'checkout'), { name: 'one', schema: 1, units: [] })
  await checkout.install(root)
  return { root, checkout }
}

/** A process that works in a folder as a VMM does: in a session of its own. */
async function workIn (t: Test, folder: string): Promise<ChildProcess> {
  await mkdir(folder, { recursive: true })
  const child = spawn('sleep', ['600'], { cwd: folder, stdio: 'ignore', detached: true })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  return child
}

for (const data of ['var/lib/berth', 'var/lib/berth/one']) {
  t.test(`--purge is refused while a VM works in ${data}, whatever its name and its control group are, and removes the data once it has ended`, async (t) => {
    const { root, checkout } = await installed(t)
    const vm = await workIn(t, join(root, data, 'instances/x/qemu'))
    const disk = join(root, data, 'instances/x/overlay.ext4')
    await writeFile(disk, '')
    await t.rejects(checkout.uninstall(root, { purge: true }), { message: `1 VMs run (processes ${vm.pid}): delete the instances before --purge removes their disks` })
    for (const path of [disk, join(root, 'usr/lib/berth/installed.json')]) t.ok(existsSync(path), path)
    t.ok('berth.service' in worldOf(root).running, 'nothing was stopped')
    vm.kill('SIGKILL')
    await once(vm, 'exit')
    // It may still end with the server, as a registry does.
    await workIn(t, join(root, data, 'registry'))
    await checkout.uninstall(root, { purge: true })
    t.notOk(existsSync(join(root, 'var/lib/berth')))
  })
}

t.test('a VM that the server has started as it ended keeps its disks, too', async (t) => {
  const { root, checkout } = await installed(t)
  const folder = join(root, 'var/lib/berth/instances/x/qemu')
  const before = async (step: string): Promise<void> => { if (step === 'systemctl stop berth.service') await workIn(t, folder) }
  await t.rejects(checkout.uninstall(root, { purge: true, before }), { message: /^1 VMs run/ })
  t.ok(existsSync(folder))
})

t.test('without --purge the VMs that go on are named, and their disks stay', async (t) => {
  const { root, checkout } = await installed(t)
  const folder = join(root, 'var/lib/berth/instances/x/qemu')
  const vm = await workIn(t, folder)
  t.match((await checkout.uninstall(root)).join('\n'), new RegExp(`go on without a server[^]*\n    ${vm.pid} sleep`))
  t.ok(existsSync(folder))
})
