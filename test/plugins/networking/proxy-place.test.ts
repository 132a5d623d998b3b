// Where the egress proxy is to live: there when it is asked for, and told where no guest may go.
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import t from 'tap'
import { createWorld, skipReason } from './world.ts'

const skip = skipReason()

t.test('the namespace and its gateway are there once it is told, also when somebody has taken them away', { skip }, async (t) => {
  const world = await createWorld(t)
  const network = await world.open({ deniedNetworks: ['169.254.0.0/16', '192.0.2.0/24'], dns: { servers: ['198.51.100.53#5353'] } })
  world.hostAddresses = ['127.0.0.1', '203.0.113.5']
  for (let round = 0; round < 2; round++) {
    t.same(await network.proxyPlace(), {
      namespace: `/run/netns/${world.namespace}`,
      gateway: '10.100.0.1',
      listeners: [{ kind: 'http', meant: 80, port: 18_080 }, { kind: 'https', meant: 443, port: 18_443 }],
      dnsPort: 18_053,
      nameServers: ['198.51.100.53#5353'],
      denied: ['169.254.0.0/16', '192.0.2.0/24', '10.100.0.0/16', '203.0.113.5']
    })
    t.match(await world.in(world.namespace, 'ip', '-brief', 'address', 'show', 'berth0'), /10\.100\.0\.1\/16/)
    if (round === 1) break
    // With its forwarder, which would keep it.
    for (const pid of (await world.ip('netns', 'pids', world.namespace)).split('\n').filter((line) => line !== '')) process.kill(Number(pid), 'SIGKILL')
    await world.ip('netns', 'delete', world.namespace)
    await rm(`/run/netns/${world.namespace}`, { force: true })
    t.notOk(existsSync(`/run/netns/${world.namespace}`))
  }
})

t.test('in a closed network nobody answers for names unless a server is configured', { skip }, async (t) => {
  const world = await createWorld(t)
  const network = await world.open()
  t.same((await network.proxyPlace()).nameServers, [])
  const places = await Promise.all(Array.from({ length: 5 }, async () => await network.proxyPlace()))
  t.equal(new Set(places.map((place) => JSON.stringify(place))).size, 1)
})
