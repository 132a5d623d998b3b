// No guest takes the names from others, or from the egress proxy: each has a share of the forwarder.
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { createWorld, skipReason, type Changes, type Machine, type World } from './world.ts'

const skip = skipReason()
const UPSTREAM = '198.51.100.2'
const ANSWER = '203.0.113.7'
const PROXY_DNS = '127.0.0.1'
const NAMES = fileURLToPath(new URL('programs/names.js', import.meta.url))
const FLOOD = fileURLToPath(new URL('programs/flood.js', import.meta.url))
const CALL = `
  const socket = require('net').connect(53, process.argv[1])
  socket.on('connect', () => console.log('open')).on('error', (error) => console.log(error.code)).on('close', () => console.log('closed'))`

interface Scene { readonly world: World, guest (id: string): Promise<Machine> }

async function setScene (t: Test, dns: Changes['dns'] = {}): Promise<Scene> {
  const world = await createWorld(t)
  await world.addOutside()
  world.child(world.outside, [process.execPath, NAMES, UPSTREAM])
  const network = await world.open({ uplink: 'auto', dns: { servers: [UPSTREAM], ...dns } })
  const guest = async (id: string): Promise<Machine> => {
    const address = await network.allocate(id)
    return await world.machine(await network.plug(id, undefined, { vcpus: 1 }, 'none'), address)
  }
  const first = await guest('first')
  for (let attempt = 0; await ask(first, 'ready.test') !== ANSWER; attempt++) if (attempt === 50) throw new Error('the server outside did not start')
  return { world, guest }
}

const ask = async (guest: Machine, name: string): Promise<string> => await guest.ask({ do: 'resolve', server: guest.address.gateway, name, timeoutMs: 3000 })

for (const [ports, how] of [[1, 'one port'], [500, 'many ports']] as const) {
  t.test(`a guest that asks for 500 names a second that nobody answers, from ${how}, costs no other guest an answer`, { skip }, async (t) => {
    const { world, guest } = await setScene(t)
    const [greedy, modest] = [await guest('greedy'), await guest('modest')]
    const proxy = await world.agent(world.namespace)
    // A conversation that has had an answer counts for the firewall as known.
    t.equal(await ask(greedy, 'before.test'), ANSWER)
    t.equal((await world.in(greedy.namespace, process.execPath, FLOOD, greedy.address.gateway, '500', '6', String(ports), 'x')).trim(), '3000 0')
    for (let at = 0; at < 20; at++) t.equal(await ask(modest, `fine-${at}.test`), ANSWER)
    t.equal(await proxy.ask({ do: 'resolve', server: PROXY_DNS, name: 'proxied.test', timeoutMs: 3000 }), ANSWER, 'and the proxy has a forwarder of its own')
  })
}

t.test('the questions of one guest are dropped above its rate, and answered again afterwards', { skip }, async (t) => {
  const { world, guest } = await setScene(t, { queriesPerSecond: 10 })
  const greedy = await guest('greedy')
  const begin = Date.now()
  const [asked, answered] = (await world.in(greedy.namespace, process.execPath, FLOOD, greedy.address.gateway, '500', '4', '1', 'fine')).trim().split(' ').map(Number)
  const seconds = (Date.now() - begin) / 1000
  t.equal(asked, 2000)
  t.ok(answered !== undefined && answered >= 40 && answered <= 40 + 10 * seconds, `${String(answered)} answers in ${seconds} s`)
  for (let attempt = 0; await ask(greedy, 'later.test') !== ANSWER; attempt++) if (attempt === 20) throw new Error('it got no answer any more')
})

t.test('open TCP connections of one guest leave the forwarder free for others', { skip }, async (t) => {
  const { world, guest } = await setScene(t)
  const [greedy, modest] = [await guest('greedy'), await guest('modest')]
  const outcomes = await Promise.all(Array.from({ length: 30 }, async () => {
    const child = world.child(greedy.namespace, [process.execPath, '-e', CALL, greedy.address.gateway])
    return await new Promise<string>((resolve) => child.stdout.once('data', (text: Buffer) => resolve(text.toString().trim())))
  }))
  t.equal(outcomes.filter((outcome) => outcome === 'open').length, 4)
  const child = world.child(modest.namespace, [process.execPath, '-e', CALL, modest.address.gateway])
  t.equal(await new Promise<string>((resolve) => child.stdout.once('data', (text: Buffer) => resolve(text.toString().trim()))), 'open')
  t.equal(await ask(modest, 'still.test'), ANSWER)
})

t.test('the proxy\'s forwarder answers in the namespace alone', { skip }, async (t) => {
  const { guest } = await setScene(t)
  const asker = await guest('asker')
  t.not(await asker.ask({ do: 'resolve', server: '127.0.0.1', name: 'fine.test', timeoutMs: 500 }), ANSWER)
})
