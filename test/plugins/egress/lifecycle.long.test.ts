// The proxy's process: who it is and what it may, what becomes of it when it, or its server, ends, and when it cannot start.
import { chmod, chown, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { ProcessIdentity } from '../../../core/contracts/services.ts'
import { endProcess } from '../../../core/process/end.ts'
import { isAlive } from '../../../core/process/identity.ts'
import { findProxies } from '../../../plugins/egress/process/find.ts'
import { resolveUser } from '../../../plugins/egress/process/user.ts'
import { skipReason } from '../networking/world.ts'
import { setStage, specOf, until, type EgressStage } from './stage.ts'

const skip = skipReason()

async function proxiesOf ({ world, paths }: EgressStage): Promise<ProcessIdentity[]> {
  const { uid } = await resolveUser(undefined, world.folder, world.commands)
  return (await findProxies(paths.folder, `/run/netns/${world.namespace}`, uid)).map(({ identity }) => identity)
}

async function theProxyOf (stage: EgressStage): Promise<ProcessIdentity> {
  const [proxy, ...others] = await proxiesOf(stage)
  if (proxy === undefined || others.length > 0) throw new Error(`there are ${others.length + (proxy === undefined ? 0 : 1)} proxies`)
  return proxy
}

t.test('it has a user of its own and no power, in the namespace, and nothing of the server open', { skip }, async (t) => {
  const stage = await setStage(t)
  const server = await stage.server()
  await server.egress.authority()
  const { pid } = await theProxyOf(stage)
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const field = (name: string): string => new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(status)?.[1] ?? ''
  const uid = Number(field('Uid').split('\t')[0])
  t.ok(uid >= 1_899_000_000 && uid < 1_900_000_000, 'below the users of VMs')
  t.same(new Set([...field('Uid').split('\t'), ...field('Gid').split('\t')]).size, 1)
  t.equal(field('Groups').trim(), '')
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb']) t.match(field(set), /^0+$/, set)
  // What is left in the bounding set can be had by nobody, with this.
  t.equal(field('NoNewPrivs'), '1')
  t.match(await readFile(`/proc/${pid}/limits`, 'utf8'), /Max core file size\s+0\s+0/)
  t.equal((await stat(`/proc/${pid}/ns/net`)).ino, (await stat(`/run/netns/${stage.world.namespace}`)).ino)
  t.equal((await stat(`/proc/${pid}/fd/1`)).ino, (await stat(stage.paths.log)).ino, 'its output goes to the log')
  for (const [path, mode, owner] of [[stage.paths.folder, '711', 0], [stage.paths.log, '600', 0], [stage.paths.config, '644', 0], [stage.paths.proxyFolder, '700', uid], [stage.paths.controlSocket, '600', uid], [join(stage.paths.proxyFolder, 'ca/ca.key'), '600', uid]] as const) {
    const found = await stat(path)
    t.same([(found.mode & 0o777).toString(8), found.uid], [mode, owner], path)
  }
})

t.test('killed, it is there again with its policy', { skip }, async (t) => {
  const stage = await setStage(t)
  const server = await stage.server()
  await server.egress.enforce('a', '10.100.0.2', specOf(server))
  const before = await stage.client.state()
  const times: number[] = []
  for (let round = 0; round < 3; round++) {
    const proxy = await theProxyOf(stage)
    const began = performance.now()
    await endProcess(proxy)
    await until(async () => (await stage.client.state()).vms === 1)
    times.push(Math.round(performance.now() - began))
    t.not((await theProxyOf(stage)).pid, proxy.pid)
  }
  t.comment(`from SIGKILL to the policy: ${times.join(', ')} ms`)
  const after = await stage.client.state()
  t.ok((after.revision ?? 0) > (before.revision ?? 0))
  t.notMatch(server.log(), /real-value/)
  t.notMatch(await readFile(stage.paths.log, 'utf8'), /real-value/)
})

t.test('it outlives its server; the next one takes it over with the same epochs, and tells it what has changed', { skip }, async (t) => {
  const stage = await setStage(t)
  const first = await stage.server()
  const spec = specOf(first)
  await first.egress.enforce('a', '10.100.0.2', spec)
  await first.egress.enforce('b', '10.100.0.3', spec)
  await first.egress.enforce('gone', '10.100.0.4', spec)
  const proxy = await theProxyOf(stage)
  const epochs = new Map((await first.repository.all()).map(({ instanceId, epoch }) => [instanceId, epoch]))
  const { revision } = await stage.client.state()
  await first.crash()
  t.equal((await stage.client.state()).vms, 3, 'it goes on')
  const second = await stage.server({ adopted: false })
  t.equal((await stage.client.state()).vms, 3, 'and is told nothing before the VMs are known')
  await t.rejects(second.egress.enforce('c', '10.100.0.5', spec), { message: /adopt comes first/ })
  // `b` has another address than the one that was noted: a server was killed in between.
  await second.egress.adopt([{ instanceId: 'a', address: '10.100.0.2', spec }, { instanceId: 'b', address: '10.100.0.9', spec }])
  await until(async () => (await stage.client.state()).vms === 2)
  t.same(await theProxyOf(stage), proxy, 'the same process')
  const now = new Map((await second.repository.all()).map(({ instanceId, epoch }) => [instanceId, epoch]))
  t.equal(now.get('a'), epochs.get('a'))
  t.not(now.get('b'), epochs.get('b'))
  t.notOk(now.has('gone'))
  t.ok(((await stage.client.state()).revision ?? 0) > (revision ?? 0), 'revisions go on')
})

t.test('one that nobody needs ends with its server; one that is needed stays, unless VMs end too', { skip }, async (t) => {
  const stage = await setStage(t)
  const first = await stage.server()
  await first.egress.authority()
  const idle = await theProxyOf(stage)
  await first.egress.close(false)
  t.notOk(isAlive(idle))
  const second = await stage.server()
  const spec = specOf(second)
  await second.egress.enforce('a', '10.100.0.2', spec)
  const busy = await theProxyOf(stage)
  await second.egress.close(false)
  t.ok(isAlive(busy))
  const third = await stage.server({ adopted: false })
  await third.egress.adopt([{ instanceId: 'a', address: '10.100.0.2', spec }])
  await third.egress.close(true)
  t.notOk(isAlive(busy))
})

t.test('with nobody to look after, none is started, and one of before is told that all is over', { skip }, async (t) => {
  const stage = await setStage(t)
  const first = await stage.server()
  t.same(await proxiesOf(stage), [])
  await first.egress.enforce('a', '10.100.0.2', specOf(first))
  await first.crash()
  await stage.server()
  await until(async () => (await stage.client.state()).vms === 0)
  t.pass()
})

t.test('another configuration replaces it, in good order; what is denied goes with the policies, and replaces nothing', { skip }, async (t) => {
  const stage = await setStage(t)
  const first = await stage.server()
  const spec = specOf(first)
  await first.egress.enforce('a', '10.100.0.2', spec)
  const before = await theProxyOf(stage)
  await first.crash()
  const second = await stage.server({ adopted: false, config: { allowPrivate: ['10.9.0.0/16'] } })
  await second.egress.adopt([{ instanceId: 'a', address: '10.100.0.2', spec }])
  await until(async () => !isAlive(before) && (await stage.client.state()).vms === 1)
  t.match(await readFile(stage.paths.log, 'utf8'), /"msg":"stopped"/, 'it was asked to end')
  const now = await theProxyOf(stage)
  t.not(now.pid, before.pid)
  await second.crash()
  const third = await stage.server({ adopted: false, config: { allowPrivate: ['10.9.0.0/16'], deny: ['203.0.113.0/24'] } })
  await third.egress.adopt([{ instanceId: 'a', address: '10.100.0.2', spec }])
  await third.egress.enforce('b', '10.100.0.3', spec)
  t.equal((await theProxyOf(stage)).pid, now.pid)
})

t.test('when it cannot start, callers hear its own words, and it is tried again', { skip }, async (t) => {
  const stage = await setStage(t)
  const server = await stage.server()
  await server.egress.authority()
  await server.stop()
  const key = join(stage.paths.proxyFolder, 'ca/ca.key')
  await chmod(key, 0o644)
  const second = await stage.server()
  await t.rejects(second.egress.enforce('a', '10.100.0.2', specOf(second)), { code: 'egress_unavailable', statusCode: 503, message: /ended at its start.*ca\.key has mode 644/s })
  t.same(await second.repository.all(), [], 'the VM has no policy')
  await chmod(key, 0o600)
  await second.egress.enforce('a', '10.100.0.2', specOf(second))
  t.equal((await stage.client.state()).vms, 1)
})

t.test('one that takes longer to start than it may is ended, and whoever waits for it is told which setting says how long', { skip }, async (t) => {
  const stage = await setStage(t)
  const server = await stage.server({ config: { proxy: { manage: true, workers: 1, startTimeout: '1ms' } } })
  await t.rejects(server.egress.enforce('a', '10.100.0.2', specOf(server)), { code: 'egress_unavailable', message: /it did not answer within 1 ms \(plugins\.egress\.config\.proxy\.startTimeout\)/ })
  await server.stop()
  t.same(await proxiesOf(stage), [])
})

t.test('what belongs to a user of before is handed over to the new one', { skip }, async (t) => {
  const stage = await setStage(t)
  const first = await stage.server()
  const { certificate } = await first.egress.authority()
  await first.stop()
  const second = await stage.server({ config: { proxy: { manage: true, user: '1899999998', startTimeout: '30s' } } })
  t.equal((await second.egress.authority()).certificate, certificate)
  t.equal((await stat(join(stage.paths.proxyFolder, 'ca/ca.key'))).uid, 1_899_999_998)
  await second.stop()
  await chown(stage.paths.proxyFolder, 0, 0)
  const third = await stage.server()
  t.equal((await third.egress.authority()).certificate, certificate)
  await t.rejects(resolveUser('0', '/x', stage.world.commands), /is root/)
  await t.rejects(resolveUser('root', '/x', stage.world.commands), /is root/)
  await t.rejects(resolveUser('no-such-user-here', '/x', stage.world.commands), /has no user no-such-user-here/)
})

t.test('one that hangs is ended and started again', { skip, timeout: 240_000 }, async (t) => {
  const stage = await setStage(t)
  const server = await stage.server()
  await server.egress.enforce('a', '10.100.0.2', specOf(server))
  const proxy = await theProxyOf(stage)
  process.kill(proxy.pid, 'SIGSTOP')
  await t.rejects(server.egress.enforce('b', '10.100.0.3', specOf(server)), { code: 'egress_unavailable' })
  await until(async () => !isAlive(proxy) && (await stage.client.state()).vms === 1)
  t.pass()
})
