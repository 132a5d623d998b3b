// Where control groups may be made: read from what kernels say, on folders that look like theirs.
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { findPlace, kernelFiles, type KernelFiles } from '../../../../plugins/resources/cgroups/place.ts'
import { testFolder } from '../../../helpers/folder.ts'

const PID = 4242

const PARENTS: ReadonlyMap<number, number> = new Map([[PID, 1], [4243, 900], [900, 1], [4244, PID], [4245, 4244]])

interface Unified { readonly isNamespace?: boolean, readonly parentName?: string, readonly controllers?: string, readonly procs?: string, readonly own?: string, readonly root?: string, readonly missing?: boolean }

interface Host extends KernelFiles {
  readonly mount: string
  readonly folder: string
  /** who was put where */
  readonly moves: string[]
}

/** A host with version 2 alone, whose server is in `/berth.service`. @param isNamespace whether the top is that of a container with a namespace of its own, which looks like the root */
async function unified (t: Test, { controllers = 'cpuset cpu io memory pids', procs = `${PID}\n`, own = '/berth.service', root = '/', missing = false, parentName = 'sh', isNamespace = false }: Unified = {}): Promise<Host> {
  const mount = testFolder(t)
  const folder = resolve(mount, `.${root === '/' ? own : own.slice(root.length)}`)
  await mkdir(folder, { recursive: true })
  for (const place of new Set([mount, folder])) {
    if (missing && place === folder) continue
    await writeFile(join(place, 'cgroup.controllers'), controllers)
    await writeFile(join(place, 'cgroup.subtree_control'), '')
    await writeFile(join(place, 'cgroup.procs'), place === folder ? procs : '')
    // The root alone has none.
    if (place !== mount || root !== '/' || isNamespace) await writeFile(join(place, 'cgroup.type'), 'domain\n')
  }
  const moves: string[] = []
  // As the kernel does: who is put in one group is in the other no more.
  const move = async (group: string, pid: number): Promise<void> => {
    moves.push(`${pid} to ${group.slice(folder.length)}`)
    const file = join(folder, 'cgroup.procs')
    await writeFile(file, (await readFile(file, 'utf8')).split('\n').filter((line) => line !== String(pid)).join('\n'))
  }
  return { mount, folder, moves, move, parentName, parentOf: async (pid) => PARENTS.get(pid), pid: PID, cgroup: `0::${own}\n`, mountinfo: `30 23 0:26 ${root} ${mount} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n22 1 0:20 / /proc rw - proc proc rw\n` }
}

t.test('a group of the server\'s own is used, and the server itself goes into a leaf of it', async (t) => {
  const host = await unified(t)
  t.same(await findPlace(undefined, host), { version: 2, folders: { cpu: host.folder, memory: host.folder, pids: host.folder } })
  t.same(host.moves, [`${PID} to /server`])
  t.equal(await readFile(join(host.folder, 'cgroup.subtree_control'), 'utf8'), '+cpu +memory +pids')
})

t.test('what is mounted may be a part of the hierarchy, as in a container', async (t) => {
  const host = await unified(t, { root: '/docker/1', own: '/docker/1/berth' })
  t.match(await findPlace(undefined, host), { version: 2, folders: { cpu: join(host.mount, 'berth') } })
})

t.test('a server that is in it no more, since it was there before, is not moved', async (t) => {
  const host = await unified(t, { procs: '' })
  t.match(await findPlace(undefined, host), { version: 2 })
  t.same(host.moves, [])
})

t.test('a group with other processes in it is nobody\'s to divide, and nobody is moved', async (t) => {
  const host = await unified(t, { procs: `${PID}\n4243\n` })
  t.match(await findPlace(undefined, host), { reason: /was not delegated to the server: other processes are in it$/ })
  t.same(host.moves, [])
  t.equal(await readFile(join(host.folder, 'cgroup.subtree_control'), 'utf8'), '')
  const foreign = await unified(t, { procs: '4243\n', parentName: 'systemd', own: '/session-1.scope' })
  t.match(await findPlace(undefined, foreign), { reason: /was not delegated/ }, 'nor of a session')
})

t.test('what the server has started goes with it, and of a service all that is there', async (t) => {
  const host = await unified(t, { procs: `${PID}\n4244\n4245\n9999\n` })
  t.match(await findPlace(undefined, host), { version: 2 })
  t.same(host.moves, [`${PID} to /server`, '4244 to /server', '4245 to /server', '9999 to /server'])
  const service = await unified(t, { procs: `${PID}\n4243\n`, parentName: 'systemd' })
  t.match(await findPlace(undefined, service), { version: 2 })
  t.same(service.moves, [`${PID} to /server`, '4243 to /server'])
})

t.test('the root of the hierarchy may have processes beside its groups, and the top of a container\'s namespace may not', async (t) => {
  const root = await unified(t, { own: '/', procs: `${PID}\n4243\n` })
  t.match(await findPlace(undefined, root), { version: 2, folders: { memory: root.folder } })
  t.same(root.moves, [])
  const container = await unified(t, { own: '/', procs: `${PID}\n4244\n`, isNamespace: true })
  t.match(await findPlace(undefined, container), { version: 2, folders: { memory: container.folder } })
  t.same(container.moves, [`${PID} to /server`, '4244 to /server'])
  const shared = await unified(t, { own: '/', procs: `${PID}\n4243\n`, isNamespace: true })
  t.match(await findPlace(undefined, shared), { reason: /was not delegated/ })
  t.same(shared.moves, [])
})

t.test('a server that is a container\'s first process goes with all that it has started, and processes of elsewhere belong to others', async (t) => {
  const parentOf = async (pid: number): Promise<number | undefined> => pid === 0 ? undefined : new Map([[1, 0], [7, 1], [8, 7], [9, 0]]).get(pid)
  const host = await unified(t, { own: '/', procs: '1\n7\n8\n', isNamespace: true })
  t.match(await findPlace(undefined, { ...host, pid: 1, parentOf }), { version: 2 })
  t.same(host.moves, ['1 to /server', '7 to /server', '8 to /server'])
  // Somebody has entered the container; and a process of another namespace has no number here.
  for (const procs of ['1\n9\n', '1\n0\n']) {
    const entered = await unified(t, { own: '/', procs, isNamespace: true })
    t.match(await findPlace(undefined, { ...entered, pid: 1, parentOf }), { reason: /was not delegated/ }, procs)
    t.same(entered.moves, [])
  }
})

t.test('a server without a parent that it could see asks what the kernel says all the same', async (t) => {
  t.intercept(process, 'ppid', { value: 0 })
  t.equal((await kernelFiles()).parentName, '')
})

t.test('a group that cannot be emptied is left alone', async (t) => {
  const host = await unified(t)
  t.match(await findPlace(undefined, { ...host, move: async () => {} }), { reason: /was not delegated/ })
})

t.test('controllers that the host does not hand down are named', async (t) => {
  const host = await unified(t, { controllers: 'memory pids' })
  t.match(await findPlace(undefined, host), { version: 2, folders: { memory: host.folder, pids: host.folder, cpu: undefined }, reason: /lacks the controllers cpu$/ })
})

t.test('a configured group is used, and made', async (t) => {
  const host = await unified(t)
  // A kernel makes these files itself.
  await mkdir(join(host.mount, 'vms'))
  for (const file of ['cgroup.controllers', 'cgroup.subtree_control', 'cgroup.procs', 'cgroup.type']) await writeFile(join(host.mount, 'vms', file), file === 'cgroup.controllers' ? 'cpu memory pids' : '')
  t.match(await findPlace('/vms', host), { version: 2, folders: { cpu: join(host.mount, 'vms') } })
  t.match(await findPlace('none/yet', host), { reason: /^control groups cannot be used: ENOENT/ })
})

t.test('without a group that it can see, the server says so', async (t) => {
  t.match(await findPlace(undefined, { ...await unified(t), cgroup: '0::/../elsewhere\n' }), { reason: /is not visible to it/ })
  t.match(await findPlace(undefined, { ...await unified(t), cgroup: '' }), { reason: /is not visible to it/ })
  t.match(await findPlace(undefined, await unified(t, { missing: true })), { reason: /^control groups cannot be used: ENOENT/ })
  t.match(await findPlace(undefined, { ...await unified(t), mountinfo: '', cgroup: '' }), { reason: 'this host has no control groups' })
})

t.test('version 1 needs a configured group, which is made for each controller', async (t) => {
  const mount = testFolder(t, { cpu: {}, memory: {}, 'the pids': {}, unified: { 'cgroup.controllers': '' } })
  const line = (folder: string, options: string): string => `31 30 0:27 / ${join(mount, folder).replaceAll(' ', '\\040')} rw - cgroup cgroup rw,${options}`
  const mountinfo = [line('cpu', 'cpu,cpuacct'), line('memory', 'memory'), line('the pids', 'pids'), `32 30 0:28 / ${join(mount, 'unified')} rw - cgroup2 cgroup2 rw`].join('\n')
  const host = { mountinfo, cgroup: '4:memory:/\n0::/\n', pid: PID, parentName: 'sh', parentOf: async () => undefined, move: async () => {} }
  t.match(await findPlace(undefined, host), { reason: /version 1, of which none is delegated to a server; name one in plugins.resources.config.cgroups.parent$/ })
  t.same(await findPlace('/berth', host), { version: 1, folders: { cpu: join(mount, 'cpu/berth'), memory: join(mount, 'memory/berth'), pids: join(mount, 'the pids/berth') } })
  const apart = { ...host, mountinfo: `${line('cpu', 'cpu')}\n${line('memory', 'cpuacct')}` }
  t.match(await findPlace('/berth', apart), { version: 1, folders: { cpu: join(mount, 'cpu/berth') }, accounting: join(mount, 'memory/berth'), reason: /lacks the controllers memory, pids$/ })
  await rm(join(mount, 'cpu'), { recursive: true })
  await writeFile(join(mount, 'cpu'), '')
  t.match(await findPlace('/berth', host), { reason: /^control groups cannot be used/ })
})
