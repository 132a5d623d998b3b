// The memory that a server may use: read from what kernels say, on folders that look like theirs.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { memoryOfHost, type MemoryFacts } from '../../../core/process/host-memory.ts'
import { testFolder } from '../../helpers/folder.ts'

const GIB = 2 ** 30
const ALL = { totalBytes: 64 * GIB, availableBytes: 40 * GIB }
const MEMINFO = `MemTotal:       ${64 * 2 ** 20} kB\nMemFree:         1048576 kB\nMemAvailable:   ${40 * 2 ** 20} kB\n`

interface Group { readonly max?: number, readonly high?: number, readonly current?: number, readonly stat?: string }

/** A host of 64 GB, of which 40 could be used, with these groups of version 2. */
async function hostWith (t: Test, groups: Readonly<Record<string, Group>>, root = '/'): Promise<(own: string) => MemoryFacts> {
  const mount = testFolder(t)
  for (const [path, { max = 'max', high = 'max', current = 0, stat = 'anon 0\n' }] of Object.entries(groups)) {
    const folder = join(mount, path)
    await mkdir(folder, { recursive: true })
    for (const [file, text] of Object.entries({ max, high, current, stat })) await writeFile(join(folder, `memory.${file}`), `${text}\n`)
  }
  return (own) => ({ meminfo: MEMINFO, cgroup: `0::${own}\n`, constrainedBytes: 0, mountinfo: `30 23 0:26 ${root} ${mount} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n` })
}

t.test('without a limit it is that of the host', async (t) => {
  const host = await hostWith(t, { '/berth.service': {}, '/berth.service/server': {} })
  for (const own of ['/', '/berth.service', '/berth.service/server', '/../elsewhere']) t.same(await memoryOfHost(host(own)), ALL, own)
  t.same(await memoryOfHost({ ...host('/'), mountinfo: '', cgroup: '' }), ALL)
})

t.test('the limit of a service holds, also once the server is in a leaf of the service\'s group', async (t) => {
  const host = await hostWith(t, { '/system.slice': {}, '/system.slice/berth.service': { max: 8 * GIB, current: GIB }, '/system.slice/berth.service/server': {} })
  for (const own of ['/system.slice/berth.service', '/system.slice/berth.service/server']) t.same(await memoryOfHost(host(own)), { totalBytes: 8 * GIB, availableBytes: 7 * GIB }, own)
})

t.test('the least limit on the way holds, be it one above which the kernel slows the group down', async (t) => {
  const host = await hostWith(t, { '/berth.slice': { max: 32 * GIB, high: 6 * GIB }, '/berth.slice/berth.service': { max: 8 * GIB, high: 7 * GIB }, '/berth.slice/berth.service/server': {} })
  t.same(await memoryOfHost(host('/berth.slice/berth.service/server')), { totalBytes: 6 * GIB, availableBytes: 6 * GIB })
})

t.test('in a container the top of what is mounted may have a limit, and what is not mounted counts for nothing', async (t) => {
  const groups = { '/': { max: 4 * GIB }, '/server': {} }
  for (const own of ['/', '/server']) t.same(await memoryOfHost((await hostWith(t, groups))(own)), { totalBytes: 4 * GIB, availableBytes: 4 * GIB }, own)
  t.same(await memoryOfHost((await hostWith(t, groups, '/docker/1'))('/docker/1/server')), { totalBytes: 4 * GIB, availableBytes: 4 * GIB })
})

t.test('what others in a group have taken is not available, but for what the kernel would drop', async (t) => {
  const stat = `anon ${5 * GIB}\nfile ${3 * GIB}\nshmem 0\ninactive_file ${2 * GIB}\nactive_file ${GIB}\nslab_reclaimable ${GIB / 2}\n`
  const host = await hostWith(t, { '/berth.slice': { max: 10 * GIB, current: 9 * GIB, stat }, '/berth.slice/berth.service': { max: 8 * GIB, current: GIB } })
  t.same(await memoryOfHost(host('/berth.slice/berth.service')), { totalBytes: 8 * GIB, availableBytes: 4.5 * GIB })
  const full = await hostWith(t, { '/berth.service': { high: 8 * GIB, current: 9 * GIB } })
  t.same(await memoryOfHost(full('/berth.service')), { totalBytes: 8 * GIB, availableBytes: 0 }, 'it may have more than the lower limit')
})

t.test('with version 1 the limit of the own group holds', async (t) => {
  const facts = { meminfo: MEMINFO, cgroup: '4:memory:/docker/1\n0::/\n', mountinfo: '30 23 0:26 / /nowhere rw - cgroup cgroup rw,memory\n' }
  t.same(await memoryOfHost({ ...facts, constrainedBytes: 4 * GIB }), { ...ALL, totalBytes: 4 * GIB })
  t.same(await memoryOfHost({ ...facts, constrainedBytes: 2 ** 63 }), ALL)
})

t.test('of this host it is known', async (t) => {
  const { totalBytes, availableBytes } = await memoryOfHost()
  t.ok(availableBytes > 0 && totalBytes > 2 ** 27)
})
