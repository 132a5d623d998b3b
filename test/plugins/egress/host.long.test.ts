// What a mediated guest and its proxy do to the host, while they run and afterwards; and what many of them leave behind.
import { readdir } from 'node:fs/promises'
import t from 'tap'
import { hostLinkOf } from '../../../plugins/networking/names.ts'
import { added, documentedLines, hostState } from '../networking/host-state.ts'
import { skipReason } from '../networking/world.ts'
import { setStage, specOf, type EgressStage, type Server } from './stage.ts'

const skip = skipReason()
const COUNT = 40
const BATCH = 20
const UID = 1_900_000_001

/** A guest with a policy asks the proxy for something, on 80, on 443 and by DNS. */
async function use (stage: EgressStage, server: Server): Promise<void> {
  const { world, network } = stage
  const address = await network.allocate('a')
  const port = await network.plug('a', undefined, { vcpus: 1, uploadBps: 1e6, downloadBps: 1e6 }, 'all')
  await server.egress.enforce('a', address.ip, specOf(server))
  const guest = await world.machine(port, address)
  for (const port of [80, 443]) await guest.ask({ do: 'call', protocol: 'tcp', host: '198.51.100.2', port, timeoutMs: 500 })
  await guest.ask({ do: 'resolve', server: address.gateway, name: 'api.good.test', timeoutMs: 2000 })
  await guest.end()
}

async function end ({ network, world }: EgressStage, server: Server): Promise<void> {
  await server.egress.lift('a')
  await network.release('a')
  await server.stop()
  await network.close(true)
  if ((await world.ip('netns', 'list')).includes(world.namespace)) throw new Error('the namespace is still there')
}

t.test('without a way out, a mediated guest and its proxy leave the host byte for byte as it was', { skip }, async (t) => {
  const stage = await setStage(t, { uplink: 'none' })
  await stage.world.addOutside()
  const before = await hostState(stage.world)
  const server = await stage.server()
  await use(stage, server)
  t.same(await hostState(stage.world), before, 'while it runs')
  await end(stage, server)
  t.same(await hostState(stage.world), before, 'and afterwards')
})

t.test('with a way out, a mediated guest and its proxy add nothing to the documented lines', { skip }, async (t) => {
  const stage = await setStage(t, { uplink: 'wan' })
  const { world } = stage
  await world.addOutside()
  const before = await hostState(world)
  const server = await stage.server()
  await use(stage, server)
  const during = await hostState(world)
  const link = hostLinkOf(world.namespace)
  const documented = documentedLines(before, link, 'wan')
  t.equal(added(before.links, during.links).filter((line) => /^\d+: /.test(line)).length, 1, 'one device')
  t.equal(added(before.neighbours, during.neighbours).length, 1, 'one neighbour')
  t.same(added(before.routes, during.routes), documented.routes)
  t.same(added(before.rules, during.rules), documented.rules)
  t.same(added(before.settings, during.settings).filter((line) => !line.includes(link)), documented.settings)
  await end(stage, server)
  t.same(await hostState(world), before, 'and afterwards it is as it was')
})

/** What the network has, what the proxy and the database know, and which files there are. */
async function census ({ world, client, paths }: EgressStage, server: Server): Promise<string[]> {
  const state = await client.state()
  // Entries of VMs that are gone stay for a while, in a bounded number: see test/proxy/audit.test.ts.
  const files = (await readdir(paths.folder, { recursive: true })).filter((file) => !file.startsWith('proxy/audit/'))
  return [
    ...await world.census(),
    `proxy: ${state.vms} policies`,
    ...(await server.repository.all()).map(({ instanceId }) => `row: ${instanceId}`),
    ...files.sort().map((file) => `file: ${file}`)
  ]
}

t.test(`${COUNT} instances' worth of addresses and TAPs, created and deleted in a loop, leave no TAP, address, rule, class, connection, policy or file behind`, { skip, timeout: 240_000 }, async (t) => {
  const stage = await setStage(t, { uplink: 'none' })
  const { world, network } = stage
  const server = await stage.server()
  await use(stage, server)
  const before = await census(stage, server)
  t.comment(`before:\n${before.join('\n')}`)
  for (let from = 0; from < COUNT; from += BATCH) {
    const ids = Array.from({ length: BATCH }, (_, at) => `guest-${from + at}`)
    await Promise.all(ids.map(async (id, at) => {
      const { ip } = await network.allocate(id)
      const mode = at % 2 === 0 ? 'all' : 'http_https_only'
      await network.plug(id, UID + at, at % 5 === 0 ? { vcpus: 1, downloadBps: 1e6, uploadBps: 2e6 } : { vcpus: 1 }, mode)
      await server.egress.enforce(id, ip, specOf(server, `value-of-${id}`, mode))
    }))
    t.equal((await stage.client.state()).vms, BATCH + 1)
    // One of each batch has connections, open when its TAP goes.
    await talk(stage, ids[2] ?? '')
    await Promise.all(ids.map(async (id) => {
      await server.egress.lift(id)
      await network.release(id)
    }))
  }
  const after = await census(stage, server)
  t.comment(`after:\n${after.join('\n')}`)
  t.same(after, before)
  await end(stage, server)
  t.notOk((await world.ip('netns', 'list')).includes(world.namespace))
})

async function talk ({ world, network }: EgressStage, id: string): Promise<void> {
  const address = await network.allocate(id)
  // Anew, since a TAP of another user cannot be opened by the test's guest.
  const guest = await world.machine(await network.plug(id, undefined, { vcpus: 1 }, 'all'), address)
  for (const port of [80, 443]) await guest.ask({ do: 'call', protocol: 'tcp', host: '198.51.100.2', port, timeoutMs: 200, keep: `${id}-${port}` })
  const open = (await world.in(world.namespace, 'conntrack', '--dump')).split('\n').filter((line) => line.includes(`src=${address.ip} `))
  if (open.length < 2) throw new Error(`there are no connections to forget: ${open.join('\n')}`)
  await guest.end()
}
