// QMP, spoken with a VMM that behaves and with ones that do not.
import { duplexPair, type Duplex } from 'node:stream'
import t from 'tap'
import { openQmp, type QmpClient } from '../../../plugins/hypervisor-qemu/client.ts'

const GREETING = '{"QMP":{"version":{"qemu":{"micro":22,"minor":2,"major":7},"package":"x"},"capabilities":[]}}\r\n'

interface Qemu { readonly socket: Duplex, readonly seen: Array<{ execute: string, id: number, arguments: unknown }> }

/** The far end. Answers the handshake; the rest is the test's. */
function qemu (greeting = GREETING): { near: Duplex, far: Qemu } {
  const [near, socket] = duplexPair()
  const seen: Qemu['seen'] = []
  socket.on('data', (chunk: Buffer) => {
    for (const line of chunk.toString().trim().split('\n')) {
      const command = JSON.parse(line)
      seen.push(command)
      if (command.execute === 'qmp_capabilities') socket.write(`{"return":{},"id":${command.id}}\r\n`)
    }
  })
  socket.on('error', () => {})
  if (greeting !== '') socket.write(greeting)
  return { near, far: { socket, seen } }
}

async function opened (): Promise<{ client: QmpClient, far: Qemu }> {
  const { near, far } = qemu()
  return { client: await openQmp(near, 1000), far }
}

async function lastId (far: Qemu, command: string): Promise<number> {
  for (;;) {
    const found = far.seen.findLast(({ execute }) => execute === command)
    if (found !== undefined) return found.id
    await new Promise(setImmediate)
  }
}

await t.test('the handshake tells the version', async (t) => {
  const { client } = await opened()
  t.equal(client.version, '7.2.22')
  client.close()
})

await t.test('a connection that was over before anyone listened is closed at once', async (t) => {
  const { near } = qemu('')
  near.destroy()
  await new Promise(setImmediate)
  await t.rejects(openQmp(near, 60_000), { code: 'qmp_closed' })
})

await t.test('answers find their commands in any order, split anywhere', async (t) => {
  const { client, far } = await opened()
  const [one, two] = [client.execute('query-status'), client.execute('query-block')]
  const answers = `{"return":[],"id":${await lastId(far, 'query-block')}}\r\n{"return":{"status":"running"},"id":${await lastId(far, 'query-status')}}\r\n`
  for (const byte of answers) far.socket.write(byte)
  t.same(await one, { status: 'running' })
  t.same(await two, [])
  client.close()
})

await t.test('an error is QEMU\'s own sentence', async (t) => {
  const { client, far } = await opened()
  const call = client.execute('cont')
  far.socket.write(`{"error":{"class":"GenericError","desc":"no"},"id":${await lastId(far, 'cont')}}\n`)
  await t.rejects(call, { code: 'qmp_refused', message: 'QEMU refused cont: no' })
  client.close()
})

await t.test('a command that is not answered in time fails; its late answer is dropped', async (t) => {
  const { client, far } = await opened()
  await t.rejects(client.execute('stop', {}, 20), { code: 'qmp_timeout' })
  far.socket.write(`{"return":{},"id":${await lastId(far, 'stop')}}\n`)
  const call = client.execute('cont')
  far.socket.write(`{"return":{},"id":${await lastId(far, 'cont')}}\n`)
  t.same(await call, {})
  client.close()
})

await t.test('events are told with their data, to whoever still listens', async (t) => {
  const { client, far } = await opened()
  const unwanted: string[] = []
  client.onEvent((name) => { unwanted.push(name) })()
  const heard = new Promise((resolve) => {
    const all: unknown[] = []
    client.onEvent((...event) => { if (all.push(event) === 2) resolve(all) })
  })
  far.socket.write('{"event":"STOP","timestamp":{"seconds":1,"microseconds":2}}\n{"event":"MIGRATION","data":{"status":"active"}}\n')
  t.same(await heard, [['STOP', {}], ['MIGRATION', { status: 'active' }]])
  t.same(unwanted, [])
  client.close()
})

await t.test('the end of the connection fails what waits, and what comes', async (t) => {
  const { client, far } = await opened()
  const call = client.execute('query-status')
  far.socket.end()
  await t.rejects(call, { code: 'qmp_closed' })
  t.type(await client.closed, 'string')
  await t.rejects(client.execute('query-status'), { code: 'qmp_closed' })
})

await t.test('what is not QMP ends the connection', async (t) => {
  const cases: ReadonlyArray<readonly [string, string]> = [
    ['not JSON', 'hello\n'], ['not an object', '[]\n'], ['a line without end', 'x'.repeat(2 ** 20 + 1)], ['a long line', '"' + 'x'.repeat(2 ** 20) + '"\n']
  ]
  for (const [what, bytes] of cases) {
    const { client, far } = await opened()
    far.socket.write(bytes)
    t.match(await client.closed, /it sent a line/, what)
  }
})

await t.test('an error whose text is none, or has no end, is a refusal like any other', async (t) => {
  const { client, far } = await opened()
  for (const desc of ['{"toString":null}', '['.repeat(100_000) + ']'.repeat(100_000), '7', 'null', `"${'x'.repeat(2 ** 19)}"`]) {
    const call = client.execute('cont')
    const id = await lastId(far, 'cont')
    far.seen.length = 0
    far.socket.write(`{"error":{"class":"x","desc":${desc}},"id":${id}}\n`)
    const refusal: unknown = await call.catch((error: unknown) => error)
    t.match(refusal, { code: 'qmp_refused', message: /^QEMU refused cont: ./ })
    t.ok(refusal instanceof Error && refusal.message.length < 3000)
  }
  client.close()
})

await t.test('a version that is no numbers is unknown', async (t) => {
  for (const part of ['{"toString":null}', '"7"', '1e400', '-1', '1.5', 'null']) {
    const { near } = qemu(GREETING.replace('"minor":2', `"minor":${part}`))
    const client = await openQmp(near, 1000)
    t.equal(client.version, 'unknown', part)
    client.close()
  }
})

await t.test('what cannot be taken in ends the connection, and not the server', async (t) => {
  const { client, far } = await opened()
  client.onEvent(() => { throw new Error('a listener that does not expect it') })
  far.socket.write('{"event":"STOP"}\n')
  t.match(await client.closed, /it sent a line that cannot be taken in \(a listener that does not expect it\)/)
})

await t.test('answers to commands that were never given are ignored', async (t) => {
  const { client, far } = await opened()
  far.socket.write('{"return":{},"id":77}\n{"return":{}}\n{"id":"x","error":{}}\n\n')
  const call = client.execute('cont')
  far.socket.write(`{"return":{},"id":${await lastId(far, 'cont')}}\n`)
  t.same(await call, {})
  client.close()
})

await t.test('commands that pile up are refused', async (t) => {
  const { client } = await opened()
  const calls = Array.from({ length: 65 }, () => client.execute('query-status').catch((error: unknown) => error))
  t.match(await calls[64], { code: 'qmp_refused' })
  client.close()
  t.match(await calls[0], { code: 'qmp_closed' })
})

await t.test('a socket on which nobody greets is given up', async (t) => {
  const { near } = qemu('')
  await t.rejects(openQmp(near, 20), { code: 'qmp_timeout' })
  t.ok(near.destroyed)
})
