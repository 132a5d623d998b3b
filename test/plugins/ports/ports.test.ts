// Published ports on a scripted host: what is refused, who is woken, what is relayed, and what a restart of the server leaves.
import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { eventually } from '../../helpers/eventually.ts'
import { crashAt } from '../instances/crash.ts'
import { ask, program, startPorts, udpProgram } from './app.ts'

const hostPortOf = (body: Record<string, unknown>): number => Number(body['host_port'])

t.test('a port that is published leads to the instance, and wakes it once for all who come while it sleeps', async (t) => {
  const { call, makeGuest, host } = await startPorts(t)
  const { id, ip } = await makeGuest('web')
  const { port, connections } = await program(t, ip)
  const made = await call('POST', '/instances/web/ports', { instance_port: port })
  t.match(made, { status: 201, body: { instance_id: id, protocol: 'tcp', address: '127.0.0.1', instance_port: port, way: 'relayed', problem: null } })
  const hostPort = hostPortOf(made.body)
  t.equal(await ask(hostPort, 'awake'), 'AWAKE')
  t.same(host.network?.openings.get(id), [{ protocol: 'tcp', port }])

  t.match(await call('POST', '/instances/web/standby'), { status: 200 })
  let restores = 0
  host.onStep = (step) => { if (step === 'restore') restores++ }
  const answers = await Promise.all(Array.from({ length: 200 }, async (_, n) => await ask(hostPort, `sleeper ${n}`)))
  t.same(answers, Array.from({ length: 200 }, (_, n) => `SLEEPER ${n}`))
  t.equal(restores, 1)
  t.equal(connections(), 201)
  t.match((await call('GET', '/instances/web')).body, { state: 'Running' })
})

t.test('an instance that cannot be woken refuses the connection, and one that was told never to wake stays asleep', async (t) => {
  const { call, makeGuest } = await startPorts(t)
  const { ip } = await makeGuest('web', { wake: 'never' })
  const { port } = await program(t, ip)
  const hostPort = hostPortOf((await call('POST', '/instances/web/ports', { instance_port: port })).body)
  await call('POST', '/instances/web/standby')
  await t.rejects(ask(hostPort, 'hello'), { code: 'ECONNRESET' })
  t.match((await call('GET', '/instances/web')).body, { state: 'Standby' })
})

t.test('datagrams that come while an instance sleeps are delivered once it is awake, as many as are kept', async (t) => {
  const { call, makeGuest, host } = await startPorts(t, { ports: { heldDatagrams: 5 } })
  const { ip } = await makeGuest('web')
  const port = await udpProgram(t, ip)
  const hostPort = hostPortOf((await call('POST', '/instances/web/ports', { instance_port: port, protocol: 'udp' })).body)
  await call('POST', '/instances/web/standby')
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  let began = false
  host.onStep = async (step) => {
    if (step !== 'restore') return
    began = true
    await held
  }
  const client = createSocket('udp4')
  t.teardown(() => { client.close() })
  const answers: string[] = []
  client.on('message', (data) => { answers.push(data.toString()) })
  client.connect(hostPort, '127.0.0.1')
  await once(client, 'connect')
  for (let n = 0; n < 9; n++) client.send(`held ${n}`)
  await eventually('a waking', () => began)
  go()
  await eventually('the answers', () => answers.length === 5)
  t.same(answers, ['HELD 0', 'HELD 1', 'HELD 2', 'HELD 3', 'HELD 4'])
  client.send('now')
  await eventually('one more answer', () => answers.includes('NOW'))
  t.match((await call('GET', '/instances/web')).body, { state: 'Running' })
})

t.test('connections that are relayed keep the instance awake, and end with its VM', async (t) => {
  const { call, makeGuest, app } = await startPorts(t)
  const { id, ip } = await makeGuest('web')
  const { port } = await program(t, ip)
  const hostPort = hostPortOf((await call('POST', '/instances/web/ports', { instance_port: port })).body)
  const socket = connect({ host: '127.0.0.1', port: hostPort })
  socket.on('error', () => {})
  socket.write('hello')
  t.equal(String((await once(socket, 'data'))[0]), 'HELLO')
  const closed = new Promise<void>((resolve) => { socket.once('close', () => { resolve() }) })
  t.match(await call('POST', '/instances/web/standby'), { status: 200 }, 'what is asked for by hand is done all the same')
  await closed
  t.ok(app)
  t.ok(id)
})

/** A guest's program that does nothing by itself: its port, and its next socket. */
async function silent (t: Test, ip: string): Promise<{ readonly port: number, readonly next: () => Promise<Socket> }> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true })
  server.listen(0, ip)
  await once(server, 'listening')
  t.teardown(() => { server.close() })
  return { port: (server.address() as AddressInfo).port, next: async () => (await once(server, 'connection') as [Socket])[0] }
}

t.test('a relayed connection that one side breaks off, or that ends with the VM, is broken off for the other, and not ended as if all had been said', async (t) => {
  const { call, makeGuest } = await startPorts(t)
  const { ip } = await makeGuest('web')
  const { port, next } = await silent(t, ip)
  const hostPort = hostPortOf((await call('POST', '/instances/web/ports', { instance_port: port })).body)
  const pair = async (): Promise<{ client: Socket, guest: Socket, seen: Record<'client' | 'guest', Promise<string>> }> => {
    const arrives = next()
    const client = connect({ host: '127.0.0.1', port: hostPort, allowHalfOpen: true })
    client.write('the first part')
    const guest = await arrives
    t.teardown(() => { for (const socket of [client, guest]) socket.destroy() })
    const ending = async (socket: Socket): Promise<string> => await new Promise((resolve) => { socket.once('end', () => { resolve('end') }).on('error', ({ message }) => { resolve(message) }) })
    const seen = { client: ending(client), guest: ending(guest) }
    for (const socket of [client, guest]) socket.resume()
    await once(guest, 'data')
    return { client, guest, seen }
  }
  const first = await pair()
  first.client.resetAndDestroy()
  t.equal(await first.seen.guest, 'read ECONNRESET', 'the client is gone')
  const second = await pair()
  second.guest.resetAndDestroy()
  t.equal(await second.seen.client, 'read ECONNRESET', 'the program is gone')
  const third = await pair()
  t.match(await call('POST', '/instances/web/standby'), { status: 200 })
  t.equal(await third.seen.client, 'read ECONNRESET', 'the VM is gone')
  t.equal(await third.seen.guest, 'read ECONNRESET')
})

t.test('a client that vanishes without a word, and a guest that does, are found out by the kernel', async (t) => {
  const { call, makeGuest } = await startPorts(t)
  const { ip } = await makeGuest('web')
  const { port } = await program(t, ip)
  const hostPort = hostPortOf((await call('POST', '/instances/web/ports', { instance_port: port })).body)
  const client = connect({ host: '127.0.0.1', port: hostPort })
  t.teardown(() => { client.destroy() })
  client.write('hello')
  await once(client, 'data')
  for (const [what, filter] of [['of the client', ['sport', '=', `:${hostPort}`]], ['of the guest', ['dst', ip, 'dport', '=', `:${port}`]]] as const) {
    // It has another timer until all that it sent is acknowledged.
    t.ok(await eventually(`the timer ${what}`, async () => /timer:\(keepalive,/.test((await promisify(execFile)('ss', ['--no-header', '--tcp', '--numeric', '--options', 'state', 'established', ...filter])).stdout)))
  }
})

t.test('what is asked for at the create is published before the instance runs, and is gone with it; a fork has none of it', async (t) => {
  const { call, make, waitFor } = await startPorts(t)
  const free = createServer()
  free.listen(0, '127.0.0.1')
  await once(free, 'listening')
  const hostPort = (free.address() as AddressInfo).port
  const ports = [{ instance_port: 80, host_port: hostPort }, { instance_port: 53, protocol: 'udp' }]
  t.match(await call('POST', '/instances', { name: 'web', image: 'test', ports }), { status: 409, body: { code: 'port_in_use', message: `127.0.0.1:${hostPort}/tcp is held by another program of this host` } })
  t.match((await call('GET', '/instances')).text, '[]')
  free.close()
  await once(free, 'close')
  await make('web', { ports })
  await waitFor('web', 'Running')
  t.match((await call('GET', '/instances/web/ports')).text, /"instance_port":80.*"instance_port":53/)
  t.match(await call('POST', '/instances', { name: 'other', image: 'test', ports: [{ instance_port: 80, host_port: hostPort }] }), {
    status: 409, body: { code: 'port_in_use', message: `127.0.0.1:${hostPort}/tcp is published for instance web already` }
  })
  t.match(await call('POST', '/instances', { name: 'other', image: 'test', ports: [{ instance_port: 80, host_port: hostPort, address: '0.0.0.0' }] }), { status: 409, body: { code: 'port_in_use' } }, 'all addresses hold that one')
  t.match(await call('POST', '/instances/web/fork', { name: 'twin', from_running: true }), { status: 201 })
  t.equal((await call('GET', '/instances/twin/ports')).text, '[]')
  t.match(await call('DELETE', '/instances/web'), { status: 204 })
  t.equal((await call('GET', '/ports')).text, '[]')
  const again = createServer()
  again.listen(hostPort, '127.0.0.1')
  await once(again, 'listening')
  again.close()
})

t.test('what one client holds, and all together, is bounded: who comes then is refused, and others are served', async (t) => {
  const { call, makeGuest } = await startPorts(t, { ports: { connectionsPerClient: 2, connectionsInAll: 3 } })
  const { ip } = await makeGuest('web')
  const { port } = await program(t, ip)
  const hostPort = hostPortOf((await call('POST', '/instances/web/ports', { instance_port: port })).body)
  const held: Socket[] = []
  t.teardown(() => { for (const socket of held) socket.destroy() })
  const hold = async (localAddress: string): Promise<string> => {
    const socket = connect({ host: '127.0.0.1', port: hostPort, localAddress })
    held.push(socket)
    socket.on('error', () => {})
    socket.write('held')
    return await new Promise<string>((resolve) => {
      socket.once('data', (data) => { resolve(data.toString()) })
      socket.once('close', () => { resolve('refused') })
    })
  }
  t.equal(await hold('127.0.0.1'), 'HELD')
  t.equal(await hold('127.0.0.1'), 'HELD')
  t.equal(await hold('127.0.0.1'), 'refused', 'as many of one client')
  t.equal(await hold('127.0.0.2'), 'HELD', 'another is served')
  t.equal(await hold('127.0.0.3'), 'refused', 'as many of all')
  held[0]?.destroy()
  await eventually('a free place', async () => await hold('127.0.0.3') === 'HELD')
})

t.test('a port is taken away again', async (t) => {
  const { call, makeGuest, host } = await startPorts(t)
  const { id, ip } = await makeGuest('web')
  const { port } = await program(t, ip)
  const { body } = await call('POST', '/instances/web/ports', { instance_port: port })
  t.match(await call('DELETE', `/instances/web/ports/${String(body['id'])}`), { status: 204 })
  t.match(await call('DELETE', `/instances/web/ports/${String(body['id'])}`), { status: 404, body: { code: 'not_found' } })
  await t.rejects(ask(hostPortOf(body), 'hello'), { code: 'ECONNREFUSED' })
  t.equal(host.network?.openings.get(id), undefined)
})

t.test('what may not be published is refused by name', async (t) => {
  const { call, make } = await startPorts(t, { ports: { addresses: ['127.0.0.0/24'], firstPort: 2000, lastPort: 60_000, perInstance: 2 } })
  await make('web')
  const refused = async (body: object, status: number, code: string, message: RegExp): Promise<void> => {
    t.match(await call('POST', '/instances/web/ports', { instance_port: 80, ...body }), { status, body: { code, message } }, message.source)
  }
  await refused({ address: '127.0.1.1' }, 400, 'invalid_ports', /^address: 127\.0\.1\.1 is none of the addresses that this server publishes at/)
  await refused({ address: '0.0.0.0' }, 400, 'invalid_ports', /^address: /)
  await refused({ address: 'localhost' }, 400, 'invalid_ports', /^address: must be an IPv4 address/)
  await refused({ host_port: 80 }, 400, 'invalid_ports', /^host_port: must be 2000 to 60000/)
  await refused({ instance_port: 0 }, 400, 'invalid_request', /instance_port/)
  t.match(await call('POST', '/instances/web/ports', { instance_port: 80 }), { status: 201 })
  t.match(await call('POST', '/instances/web/ports', { instance_port: 80 }), { status: 201 })
  await refused({}, 409, 'insufficient_resources', /instance web has 2 published ports already/)
  t.match(await call('POST', '/instances', { name: 'other', image: 'test', ports: [{ instance_port: 80, host_port: 80 }] }), { status: 400, body: { code: 'invalid_ports', message: /^ports\.0\.host_port: / } })
  t.match(await call('POST', '/instances', { name: 'other', image: 'test', network: { enabled: false }, ports: [{ instance_port: 80 }] }), { status: 501, body: { code: 'not_supported' } })
  t.match(await call('POST', '/instances/nobody/ports', { instance_port: 80 }), { status: 404 })
})

t.test('the next server holds the ports again, and says which another program has taken meanwhile until that is gone', async (t) => {
  const first = await startPorts(t)
  const { id, ip } = await first.makeGuest('web')
  const { port } = await program(t, ip)
  const kept = hostPortOf((await first.call('POST', '/instances/web/ports', { instance_port: port })).body)
  const taken = hostPortOf((await first.call('POST', '/instances/web/ports', { instance_port: port })).body)
  await first.call('POST', '/instances/web/standby')
  await first.app.stop()
  const thief = createServer()
  thief.listen(taken, '127.0.0.1')
  await once(thief, 'listening')
  const second = await startPorts(t, { host: first.host, dataDir: first.dataDir })
  t.match(JSON.parse((await second.call('GET', '/ports')).text), [
    { host_port: kept, way: 'relayed', problem: null }, { host_port: taken, way: 'none', problem: `127.0.0.1:${taken}/tcp is held by another program of this host` }
  ])
  t.equal(await ask(kept, 'again'), 'AGAIN')
  t.same(first.host.network?.openings.get(id), [{ protocol: 'tcp', port }, { protocol: 'tcp', port }])
  thief.close()
  await eventually('the port to be held', async () => JSON.parse((await second.call('GET', '/ports')).text)[1].way === 'relayed')
  t.equal(await ask(taken, 'both'), 'BOTH')
})

t.test('the next server opens the ports of all instances but of those that cannot be opened now, holds each, and tries the others again', async (t) => {
  const first = await startPorts(t)
  const { host } = first
  const ids: string[] = []
  for (const name of ['one', 'two', 'three']) {
    const { id, ip } = await first.makeGuest(name)
    const { port } = await program(t, ip)
    await first.call('POST', `/instances/${name}/ports`, { instance_port: port })
    ids.push(id)
  }
  await first.app.stop()
  host.network?.openings.clear()
  let times = 0
  host.onStep = (step) => { if (step === 'setInbound' && times++ === 0) throw new Error('nft does not work today') }
  const second = await startPorts(t, { host, dataDir: first.dataDir })
  const isOpen = (): boolean[] => ids.map((id) => host.network?.openings.has(id) === true)
  await eventually('the others are open', () => isOpen().filter(Boolean).length === 2)
  const ports: Record<string, unknown>[] = JSON.parse((await second.call('GET', '/ports')).text)
  t.equal(ports.length, 3)
  for (const port of ports) t.equal(await ask(hostPortOf(port), 'here'), 'HERE')
  await eventually('all are open', () => isOpen().every(Boolean))
})

for (const step of ['allocate', 'allocated', 'launch', 'launched', 'release', 'released'] as const) {
  t.test(`a server that dies at "${step}" of a create or delete leaves no port of an instance that is no more`, async (t) => {
    const before = await startPorts(t)
    if (step.startsWith('release')) await before.make('web', { ports: [{ instance_port: 80 }] })
    const work = async (): Promise<unknown> => step.startsWith('release')
      ? await before.call('DELETE', '/instances/web')
      : await before.call('POST', '/instances', { name: 'web', image: 'test', overlay_size: '32MB', ports: [{ instance_port: 80 }] })
    const after = await crashAt(t, before, step, work, startPorts)
    t.equal((await after.call('GET', '/instances')).text, '[]')
    t.equal((await after.call('GET', '/ports')).text, '[]')
    t.equal(after.host.network?.openings.size ?? 0, 0)
  })
}

for (const [verb, step, isThere] of [['POST', 'setInbound', true], ['POST', 'inboundSet', true], ['DELETE', 'setInbound', false], ['DELETE', 'inboundSet', false]] as const) {
  t.test(`a server that dies at "${step}" of ${verb} of a port of an instance is followed by one that ${isThere ? 'holds and opens' : 'has nothing of'} it`, async (t) => {
    const before = await startPorts(t)
    const { id } = await before.makeGuest('web')
    const portId = verb === 'POST' ? '' : String((await before.call('POST', '/instances/web/ports', { instance_port: 80 })).body['id'])
    const after = await crashAt(t, before, step, async () => verb === 'POST' ? await before.call('POST', '/instances/web/ports', { instance_port: 80 }) : await before.call('DELETE', `/instances/web/ports/${portId}`), startPorts)
    t.equal(JSON.parse((await after.call('GET', '/ports')).text).length, isThere ? 1 : 0)
    // The real network forgets all openings when it is taken over, so those of ports that are gone need no closing.
    if (isThere) t.same(after.host.network?.openings.get(id), [{ protocol: 'tcp', port: 80 }])
  })
}

t.test('a port that could not be opened is not published: its place is free, and no row is left', async (t) => {
  const { call, makeGuest, host } = await startPorts(t)
  await makeGuest('web')
  host.failures.set('setInbound', new Error('nft does not work today'))
  t.equal((await call('POST', '/instances/web/ports', { instance_port: 80 })).status, 500)
  host.failures.delete('setInbound')
  t.equal((await call('GET', '/ports')).text, '[]')
  t.match(await call('POST', '/instances/web/ports', { instance_port: 80 }), { status: 201 })
})

t.test('a port that was taken away and could not be closed at once is closed later, though nobody can ask for it again', async (t) => {
  const { call, makeGuest, host } = await startPorts(t)
  const { id } = await makeGuest('web')
  const { body } = await call('POST', '/instances/web/ports', { instance_port: 80 })
  host.failures.set('setInbound', new Error('nft does not work today'))
  t.equal((await call('DELETE', `/instances/web/ports/${String(body['id'])}`)).status, 500)
  t.equal((await call('DELETE', `/instances/web/ports/${String(body['id'])}`)).status, 404)
  t.ok(host.network?.openings.has(id))
  host.failures.delete('setInbound')
  await eventually('nothing of it is open', () => host.network?.openings.has(id) === false)
})

t.test('a key without the scope of instances publishes nothing, and takes nothing away', async (t) => {
  const { call, makeGuest } = await startPorts(t)
  await makeGuest('web')
  const { body } = await call('POST', '/instances/web/ports', { instance_port: 80 })
  const key = String((await call('POST', '/keys', { name: 'reader', scopes: ['instance:read'] })).body['key'])
  const reader = { authorization: `Bearer ${key}` }
  t.match(await call('POST', '/instances/web/ports', { instance_port: 81 }, reader), { status: 403, body: { message: /instance:write/ } })
  t.match(await call('DELETE', `/instances/web/ports/${String(body['id'])}`, undefined, reader), { status: 403 })
  t.equal((await call('GET', '/ports', undefined, reader)).status, 200)
  const other = { authorization: `Bearer ${String((await call('POST', '/keys', { name: 'other', scopes: ['instance:delete'] })).body['key'])}` }
  for (const [method, url] of [['GET', '/ports'], ['GET', '/instances/web/ports'], ['POST', '/instances/web/ports'], ['DELETE', `/instances/web/ports/${String(body['id'])}`]] as const) {
    t.match(await call(method, url, method === 'POST' ? { instance_port: 81 } : undefined, other), { status: 403 }, `${method} ${url}`)
  }
})
