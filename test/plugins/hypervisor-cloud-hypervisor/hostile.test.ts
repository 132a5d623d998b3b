// A Cloud Hypervisor that its guest controls answers what it likes: the server, which may be root, touches nothing outside of the VM's folder by it. And a guest that does not do its part.
import { access, mkdir, readdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { makeHandle } from '../../../core/library/vmm/handle.ts'
import { createRestImaging } from '../../../core/library/vmm/rest-capture.ts'
import type { RestClient } from '../../../core/library/vmm/rest-client.ts'
import { captureOf } from '../../../plugins/hypervisor-cloud-hypervisor/capture.ts'
import { createPlugging } from '../../../plugins/hypervisor-cloud-hypervisor/disks.ts'
import { askInfo } from '../../../plugins/hypervisor-cloud-hypervisor/info.ts'
import { createBalloon, folderOf } from '../../../plugins/hypervisor-cloud-hypervisor/vm.ts'
import { testFolder } from '../../helpers/folder.ts'
import { commands } from '../hypervisor-qemu/machine.ts'

const saying = (info: object): RestClient => ({ ask: async () => await Promise.resolve(info) })

await t.test('a disk that is unplugged has its link removed, and a path that the VMM names for it is not followed', async (t) => {
  const directory = testFolder(t, { other: 'of somebody else' })
  const folder = folderOf(directory)
  await mkdir(folder.path)
  await writeFile(join(folder.path, 'unit-3'), '')
  const asked: string[] = []
  const unplug = async (path: string): Promise<void> => await createPlugging({
    folder, client: saying({ config: { disks: [{ id: 'volume-0', path }] } }), slow: async (call) => { asked.push(call) }, isLimited: false, timeoutMs: 1000
  }).unplugDisk('volume-0')
  await unplug('unit-3')
  await t.rejects(access(join(folder.path, 'unit-3')))
  for (const path of ['../other', join(directory, 'other'), 'unit-3/../../other', 'kernel']) await t.rejects(unplug(path), { code: 'vmm_refused' }, path)
  await access(join(directory, 'other'))
  t.same(asked, ['/vm.remove-device'])
})

await t.test('a guest that does not let go of a disk is waited for, and that it did not is no fault of the server\'s', async (t) => {
  const unplugged = createPlugging({ folder: folderOf(testFolder(t, {})), client: saying({ config: {}, device_tree: { 'volume-0': {} } }), slow: async () => {}, isLimited: false, timeoutMs: 50 }).unplugDisk('volume-0')
  await t.rejects(unplugged, { code: 'vmm_silent', statusCode: 504, message: /volume-0/ })
})

await t.test('an answer of wrong types is refused, and no other error', async (t) => {
  const odd = { toString: 1, valueOf: 1 }
  const answers = [
    [], 'text', {}, { config: 1 },
    { config: { disks: [{ id: odd, path: 'disk-root' }] } },
    { config: { disks: [{ id: 'root', path: odd }] } },
    { config: { disks: [{ id: 'root' }] } },
    ...[odd, -1, 0.5, null].map((size) => ({ config: { balloon: { size } } }))
  ]
  for (const answer of answers) await t.rejects(askInfo(saying(Object(answer))), { code: 'vmm_refused' }, JSON.stringify(answer))
  t.match(await askInfo(saying({ config: { disks: 1, balloon: { size: 1 } }, memory_actual_size: odd, state: odd, device_tree: [] })), { state: undefined, disks: [], memoryBytes: undefined, balloonBytes: 1 })
})

await t.test('memory that the guest cannot have is refused, so that what reclaims it counts with what is there', async (t) => {
  const whole = 2 ** 30
  const bytesOf = async (said: unknown): Promise<number> => await createBalloon(whole, saying({ config: {}, memory_actual_size: said }), async () => {}).bytes()
  for (const said of [undefined, null, '1', { toString: 1 }, -1, 0.5, whole + 1, 1e300]) await t.rejects(bytesOf(said), { code: 'vmm_refused' }, JSON.stringify(said))
  for (const said of [0, whole / 2, whole]) t.equal(await bytesOf(said), said)
})

await t.test('a capture takes the files that were written where it asked for them, and not those of another VM to which the VMM leads it', async (t) => {
  const files = { 'state.json': '{"of":"another VM"}', 'memory-ranges': 'of another VM' }
  const directory = testFolder(t, { other: { captured: files } })
  const folder = folderOf(directory)
  await mkdir(folder.path)
  const captured = join(folder.path, 'captured')
  const capture = captureOf(folder, saying({ config: {} }), async (call) => {
    if (call !== '/vm.snapshot') return
    for (const name of Object.keys(files)) await writeFile(join(captured, name), '{"of":"this VM"}')
    await rename(captured, join(folder.path, 'elsewhere'))
    await symlink('../other/captured', captured)
  })
  const imaging = createRestImaging({
    vm: { refresh: async () => {} },
    handle: makeHandle({ driver: 'cloud-hypervisor', process: { pid: 1, startTicks: '1', bootId: '1' }, directory, vmmVersion: '53.0', image: { key: '', shape: {}, vcpus: 1, memoryBytes: 1 } }),
    commands,
    ask: async () => await Promise.resolve({ status: 'running' })
  }, capture)
  const [statePath, memoryPath] = [join(directory, 'state'), join(directory, 'memory')]
  await imaging.capture({ statePath, memoryPath })
  t.match(await readFile(statePath, 'utf8'), /this VM/)
  t.match(await readFile(memoryPath, 'utf8'), /this VM/)
  t.same((await readdir(join(directory, 'other/captured'))).sort(), Object.keys(files).sort(), 'nor does it remove them')
  t.same(await readdir(folder.path), ['elsewhere'], 'the link is removed')
})
