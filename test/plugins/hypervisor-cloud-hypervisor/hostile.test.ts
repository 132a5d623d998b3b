// A Cloud Hypervisor that its guest controls answers what it likes: the server, which may be root, touches nothing outside of the VM's folder by it.
import { access, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { RestClient } from '../../../core/library/vmm/rest-client.ts'
import { createPlugging } from '../../../plugins/hypervisor-cloud-hypervisor/disks.ts'
import { askInfo } from '../../../plugins/hypervisor-cloud-hypervisor/info.ts'
import { folderOf } from '../../../plugins/hypervisor-cloud-hypervisor/vm.ts'

const saying = (info: object): RestClient => ({ ask: async () => await Promise.resolve(info) })

await t.test('a disk that is unplugged has its link removed, and a path that the VMM names for it is not followed', async (t) => {
  const directory = t.testdir({ other: 'of somebody else' })
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

await t.test('an answer of wrong types is refused, and no other error', async (t) => {
  const odd = { toString: 1, valueOf: 1 }
  const answers = [
    [], 'text', {}, { config: 1 },
    { config: { disks: [{ id: odd, path: 'disk-root' }] } },
    { config: { disks: [{ id: 'root', path: odd }] } },
    { config: { disks: [{ id: 'root' }] } }
  ]
  for (const answer of answers) await t.rejects(askInfo(saying(Object(answer))), { code: 'vmm_refused' }, JSON.stringify(answer))
  t.match(await askInfo(saying({ config: { disks: 1, balloon: { size: odd } }, memory_actual_size: odd, state: odd, device_tree: [] })), { state: undefined, disks: [], memoryBytes: NaN, balloonBytes: NaN })
})
