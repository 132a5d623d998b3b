// TAPs come and go whole: what is made, what is left, and what a server that was killed in between leaves to the next.
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { HostCommands } from '../../../core/contracts/services.ts'
import type { EgressMode } from '../../../plugins/networking/contract.ts'
import { tapOf } from '../../../plugins/networking/names.ts'
import type { Networking } from '../../../plugins/networking/service.ts'
import { partOfCommit, playsWholeTables } from '../../../setup/test/share-of-commit.ts'
import { createWorld, PLACES, skipReason, type World } from './world.ts'

const skip = skipReason()
const LIMITED = { vcpus: 1, downloadBps: 1_000_000, uploadBps: 2_000_000 }
const UID = 1_900_000_001

t.test('nothing is made before the first plug', { skip }, async (t) => {
  const world = await createWorld(t)
  const network = await world.open()
  await network.allocate('a')
  await network.unplug('a')
  t.equal(await network.counters('a'), undefined)
  t.notOk((await world.ip('netns', 'list')).includes(world.namespace))
})

t.test('a plugged guest has a TAP of its user, isolated and known by its MAC; unplugged it has nothing', { skip }, async (t) => {
  const world = await createWorld(t)
  const network = await world.open()
  await network.allocate('first')
  await network.plug('first', undefined, { vcpus: 1 }, 'none')
  const before = await world.census()
  const { ip, mac } = await network.allocate('a')
  const port = await network.plug('a', UID, LIMITED, 'all')
  t.same(port, { namespace: `/run/netns/${world.namespace}`, tap: tapOf('a') })
  const [link] = JSON.parse(await world.in(world.namespace, 'ip', '-json', '-details', 'link', 'show', 'dev', port.tap)) as [Record<string, unknown>]
  t.match(link, {
    master: 'berth0',
    linkinfo: { info_data: { user: UID }, info_slave_data: { isolated: true, learning: false, flood: false, mcast_flood: false, bcast_flood: false } }
  })
  const census = await world.census()
  for (const trace of [`fdb: ${mac} dev ${port.tap} master berth0 static`, `neighbour: ${ip} dev berth0 lladdr ${mac} PERMANENT`, `element: berth sealed "${ip}"`, `element: berth vm_users ${UID}`]) {
    t.ok(census.includes(trace), trace)
  }
  await network.plug('a', UID, { vcpus: 1 }, 'none')
  t.notOk((await world.census()).some((line) => line.includes('tbf') || line.includes('sealed')), 'a second plug replaces the first with all that it had')
  await network.unplug('a')
  await network.unplug('a')
  t.same(await world.census(), before)
  t.match(network.addressOf('a'), { ip, mac }, 'the address stays')
})

t.test('counters are the VM\'s view, and cost no more for many', { skip }, async (t) => {
  const world = await createWorld(t)
  const network = await world.open()
  const address = await network.allocate('a')
  const guest = await world.machine(await network.plug('a', undefined, { vcpus: 1 }, 'none'), address)
  const before = await network.counters('a')
  await guest.ask({ do: 'call', protocol: 'udp', host: address.gateway, port: 53, timeoutMs: 10 })
  for (let size = 0; size < 10; size++) await guest.ask({ do: 'call', protocol: 'tcp', host: '192.0.2.1', port: 80, timeoutMs: 3000 })
  const after = await network.counters('a')
  t.ok(before !== undefined && after !== undefined && after.txBytes - before.txBytes >= 10 * 60 && after.rxBytes > before.rxBytes, `${JSON.stringify(before)} ${JSON.stringify(after)}`)
  t.same(await network.counters('b'), undefined)
})

t.test('200 guests that come and go leave nothing behind', { skip }, async (t) => {
  const world = await createWorld(t)
  const network = await world.open()
  await network.allocate('first')
  await network.plug('first', undefined, { vcpus: 1 }, 'none')
  const before = await world.census()
  const modes: EgressMode[] = ['none', 'all', 'http_https_only']
  const times: number[] = []
  for (let round = 0; round < 4; round++) {
    const ids = Array.from({ length: 50 }, (_, at) => `guest-${round}-${at}`)
    for (const [at, id] of ids.entries()) {
      await network.allocate(id)
      const start = performance.now()
      await network.plug(id, UID + at, at % 5 === 0 ? LIMITED : { vcpus: 1 }, modes[at % 3] ?? 'none')
      times.push(performance.now() - start)
    }
    t.equal((await world.census()).filter((line) => line.startsWith('link: bt')).length, 51)
    await Promise.all(ids.map(async (id) => { await network.release(id) }))
  }
  t.same(await world.census(), before, before.join('\n'))
  times.sort((a, b) => a - b)
  t.comment(`plug: median ${times[100]?.toFixed(1)} ms, slowest ${times.at(-1)?.toFixed(1)} ms`)
})

t.test('50 guests at the same time get what each alone would', { skip }, async (t) => {
  const world = await createWorld(t)
  const network = await world.open()
  const ids = Array.from({ length: 50 }, (_, at) => `guest-${at}`)
  const start = performance.now()
  await Promise.all(ids.map(async (id) => { await network.allocate(id); await network.plug(id, undefined, { vcpus: 1 }, 'all') }))
  t.comment(`50 plugs together, with the namespace: ${(performance.now() - start).toFixed(0)} ms`)
  const census = await world.census()
  t.equal(census.filter((line) => line.startsWith('link: bt')).length, 50)
  t.equal(census.filter((line) => line.startsWith('element: berth sealed')).length, 50)
  await Promise.all(ids.map(async (id) => { await network.release(id) }))
  t.same((await world.census()).filter((line) => /^(fdb|neighbour|element|connection|queue.*b[ti])/.test(line)), [])
})

/** Commands of a server that is killed before its `steps`th one: from there on nothing comes back, and nothing is done. */
function killedAfter (world: World, steps: number): { commands: HostCommands, killed: Promise<void>, used: () => number } {
  let used = 0
  let kill: () => void = () => {}
  const killed = new Promise<void>((resolve) => { kill = resolve })
  return {
    killed,
    used: () => used,
    commands: {
      run: async (file, args, options) => {
        if (used++ < steps) return await world.commands.run(file, args, options)
        kill()
        return await new Promise(() => {})
      }
    }
  }
}

/** of the steps; a commit plays one part, and the run without a kill */
const PARTS = 4

/** Runs `work` against a server that is killed at each of its steps in turn, then lets the next server judge. The first step that was not there any more. */
async function atEachStep (t: Test, world: World, prepare: (network: Networking) => Promise<void>, work: (network: Networking) => Promise<void>, judge: (network: Networking, step: number) => Promise<void>): Promise<number> {
  const [first, each] = playsWholeTables ? [0, 1] : [partOfCommit(PARTS), PARTS]
  for (let step = first; ; step += each) {
    const before = await world.open()
    await prepare(before)
    await world.abandon(before)
    const dying = killedAfter(world, Number.MAX_SAFE_INTEGER)
    const second = await world.open({}, 'host-a', dying.commands)
    const opened = dying.used()
    await world.abandon(second)
    const { commands, killed } = killedAfter(world, opened + step)
    const server = await world.open({}, 'host-a', commands)
    const outcome = await Promise.race([work(server).then(() => 'done' as const), killed.then(() => 'killed' as const)])
    await world.abandon(server)
    const next = await world.open()
    await judge(next, step)
    await next.close(true)
    if (outcome === 'done') return step
    if (step > 40) throw new Error('it does not end')
  }
}

// A further bridge stays, with its way to the gateway.
const leftovers = (census: readonly string[]): string[] => census.filter((line) => /^(link: b[ti]|queue: .*(tbf|ingress)|fdb|neighbour|element|connection)/.test(line) && !line.includes('dev up-berth'))

for (const [place, bridgeRoom] of Object.entries(PLACES).slice(0, 2)) {
  t.test(`a server that is killed at any step of the first plug leaves what the next one completes: ${place}`, { skip }, async (t) => {
    const world = await createWorld(t, bridgeRoom)
    const steps = await atEachStep(t, world,
      async (network) => { await network.allocate('a') },
      async (network) => { await network.plug('a', UID, LIMITED, 'all') },
      async (network, step) => {
        await network.plug('a', UID, LIMITED, 'all')
        const census = await world.census()
        t.ok(census.some((line) => line.includes('element: berth sealed')) && census.some((line) => line.includes('link: bt')), `killed at step ${step}: the next plug is whole`)
        await network.unplug('a')
        t.same(leftovers(await world.census()), [], `killed at step ${step}: nothing is left`)
      })
    t.ok(steps > 8, `${steps} steps`)
  })

  t.test(`a server that is killed at any step of a plug, a change or an unplug leaves nothing that the next one does not know: ${place}`, { skip }, async (t) => {
    const world = await createWorld(t, bridgeRoom)
    const keep = async (network: Networking): Promise<void> => {
      await network.allocate('keeper')
      await network.plug('keeper', undefined, { vcpus: 1 }, 'none')
      await network.allocate('a')
    }
    const works: Record<string, (network: Networking) => Promise<void>> = {
      plug: async (network) => { await network.plug('a', UID, LIMITED, 'http_https_only') },
      unplug: async (network) => { await network.unplug('a') },
      change: async (network) => { await network.setEgress('a', 'all') },
      release: async (network) => { await network.release('a') }
    }
    for (const [name, work] of Object.entries(works)) {
      const steps = await atEachStep(t, world,
        async (network) => {
          await keep(network)
          if (name !== 'plug') await network.plug('a', UID, LIMITED, 'http_https_only')
        },
        work,
        async (network, step) => {
          const census = await world.census()
          const hasTap = census.some((line) => line === `link: ${tapOf('a')}`)
          t.equal(census.some((line) => line.includes('element: berth senders') && line.includes(tapOf('a'))), hasTap, `${name} killed at step ${step}: rules for a TAP that exists, and for no other`)
          t.equal(census.filter((line) => line.includes('tbf')).length, hasTap ? 2 : 0, 'and its limits')
          await network.retainOnly([])
          t.same(leftovers(await world.census()), [], 'and it can be given back')
        })
      t.ok(steps >= 3, `${name}: ${steps} steps`)
    }
  })
}

t.test('what an operator breaks is mended: rules, TAPs, and a namespace that is gone', { skip }, async (t) => {
  const world = await createWorld(t)
  let network = await world.open()
  await network.allocate('a')
  await network.plug('a', UID, LIMITED, 'all')
  const before = await world.census()
  await world.in(world.namespace, 'nft', 'flush', 'ruleset')
  await world.ip('-n', world.namespace, 'link', 'set', tapOf('a'), 'nomaster')
  await world.ip('-n', world.namespace, 'neigh', 'flush', 'dev', 'berth0', 'nud', 'permanent')
  await world.ip('-n', world.namespace, 'tuntap', 'add', 'dev', 'btaaaaaaaaaaaa', 'mode', 'tap')
  await world.ip('-n', world.namespace, 'tuntap', 'add', 'dev', 'somebodys', 'mode', 'tap')
  await world.in(world.namespace, 'tc', 'qdisc', 'del', 'dev', tapOf('a'), 'root')
  await world.abandon(network)
  network = await world.open()
  const after = (await world.census()).filter((line) => !line.includes('somebodys'))
  const numberless = (lines: readonly string[]): string[] => lines.map((line) => line.replace(/tbf [0-9a-f]+:/, 'tbf')).sort()
  t.same(numberless(after), numberless(before))
  await world.ip('netns', 'delete', world.namespace)
  await network.plug('a', UID, LIMITED, 'all')
  t.same(numberless(await world.census()), numberless(before), 'made again by the next plug')
  // It is nsenter for a moment before it is dnsmasq, and who finds nothing fails.
  const find = async (): Promise<string> => await world.real.run('pgrep', ['-f', `^dnsmasq .*${world.folder}`]).then(({ stdout }) => stdout.trim(), () => '')
  let forwarders = await find()
  for (let attempt = 0; attempt < 200 && forwarders === ''; attempt++) {
    await delay(50)
    forwarders = await find()
  }
  t.same(forwarders.split('\n'), (await world.ip('netns', 'pids', world.namespace)).trim().split('\n'), 'with one DNS forwarder, in it')
})

t.test('a namespace belongs to one data folder', { skip }, async (t) => {
  const world = await createWorld(t)
  const network = await world.open()
  await network.allocate('a')
  await network.plug('a', undefined, { vcpus: 1 }, 'none')
  const before = await world.census()
  const other = await world.open({}, 'host-b')
  await other.allocate('b')
  await t.rejects(other.plug('b', undefined, { vcpus: 1 }, 'none'), { code: 'network_unusable', message: /belongs to the server of .*berth-net-.*namespace/ })
  await other.close(true)
  t.same(await world.census(), before)
})
