import t from 'tap'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { request, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { promisify } from 'node:util'
import { answered, ask, closesWithin, exchangeBytes, openPlain, openTls } from './helpers/guest.ts'
import { startProxy, vmPolicy } from './helpers/proxy.ts'
import { setStage } from './helpers/setup.ts'
import { eventually } from '../helpers/eventually.ts'

const HOST = 'api.good.test'
const run = promisify(execFile)

t.test('without a policy nothing gets out, and health says why', async (t) => {
  const stage = await setStage(t)
  const proxy = await startProxy({ roots: [], resolver: stage.names.server, httpPort: 80, httpsPort: stage.port })
  t.teardown(async () => await proxy.stop())
  t.equal((await proxy.call('GET', '/health')).status, 503)
  t.match(JSON.parse((await proxy.call('GET', '/policy')).body), { revision: null, vms: 0 })
  await t.rejects(openPlain(proxy, stage.guest), { code: 'ECONNREFUSED' })
  await proxy.policy()
  t.equal((await proxy.call('GET', '/health')).status, 200)
  t.ok(await closesWithin(await openPlain(proxy, stage.guest), 10_000), 'a policy that names nobody lets nobody out')
  t.equal((await stage.proxy.call('GET', '/health')).status, 200)
  t.equal((await stat(join(stage.proxy.folder, 'control.sock'))).mode & 0o777, 0o600)
  t.equal((await stage.proxy.call('GET', '/nothing')).status, 404)
  t.equal((await stage.proxy.call('GET', '/audit?vm=x&limit=0')).status, 400)
})

t.test('A29 and A30: with another epoch or another VM on its address, everything of the old one ends: connections, pools, tickets', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  const ca = await stage.proxy.ca()
  let ticket: Buffer | undefined
  const open = async (session?: Buffer) => {
    const socket = connectTls({ socket: await openPlain(stage.proxy, stage.guest, stage.proxy.ports.https), servername: HOST, ca, session, ALPNProtocols: ['http/1.1'] })
    socket.on('error', () => {})
    socket.on('session', found => { ticket = found })
    await once(socket, 'secureConnect')
    return socket
  }
  const line = `GET / HTTP/1.1\r\nHost: ${stage.host(HOST)}\r\n\r\n`
  const first = await open()
  await exchangeBytes(first, line, text => text.includes('origin'))
  const again = await open(ticket)
  t.ok(again.isSessionReused(), 'within an epoch tickets save a handshake')
  await exchangeBytes(again, line, text => text.includes('origin'))
  t.equal(origin.connections(), 1, 'and connections to the origin are kept')
  await stage.proxy.policy(vmPolicy(stage.guest, [], { id: 'another', epoch: '2' }))
  t.ok(await closesWithin(first, 10_000))
  // The origin notices in its own time.
  for (let tries = 0; tries < 1000 && origin.open() > 0; tries++) await new Promise(resolve => setTimeout(resolve, 10))
  t.equal(origin.open(), 0)
  const after = await open(ticket)
  t.notOk(after.isSessionReused())
  await exchangeBytes(after, line, text => text.includes('origin'))
  t.equal(origin.seen.at(-1)?.headers.authorization, undefined)
  t.equal(origin.connections(), 2)
  await stage.proxy.policy()
  t.ok(await closesWithin(after, 10_000), 'a VM that is gone has no connections')
  t.ok(await closesWithin(await openPlain(stage.proxy, stage.guest), 10_000))
})

t.test('A29: a request that is under way when its VM goes ends on both sides', async (t) => {
  const stage = await setStage(t)
  let far: ServerResponse | undefined
  await stage.origin(100, {
    streaming: (_seen, response) => {
      far = response
      response.writeHead(200)
      response.write('first')
    }
  })
  const socket = await openTls(stage.proxy, stage.guest, HOST)
  socket.write(`GET / HTTP/1.1\r\nHost: ${stage.host(HOST)}\r\n\r\n`)
  await once(socket, 'data')
  const gone = once(far?.socket ?? socket, 'close')
  await stage.proxy.policy()
  await gone
  t.ok(await closesWithin(socket, 10_000))
  t.match((await stage.proxy.audited(`vm-${stage.guest}`, entries => entries.length > 0))[0], { reason: 'policy_changed', status: 200 })
})

t.test('P22: after SIGTERM what is under way finishes, nothing new is taken, and the log\'s numbers go on after a restart', async (t) => {
  const stage = await setStage(t, { limits: { drainMs: 30_000 } })
  let far: ServerResponse | undefined
  let arrived: (() => void) | undefined
  const reached = new Promise<void>(resolve => { arrived = resolve })
  await stage.origin(100, {
    streaming: (seen, response) => {
      if (seen.url !== '/slow') return response.end('fast')
      far = response
      response.writeHead(200)
      response.write('first ')
      arrived?.()
    }
  })
  await ask(stage.proxy, stage.guest, { name: HOST, headers: { host: stage.host(HOST) } })
  const socket = await openTls(stage.proxy, stage.guest, HOST)
  const answer = answered(request({ createConnection: () => socket, path: '/slow', headers: { host: stage.host(HOST) } }).end())
  await reached
  const exited = once(stage.proxy.process, 'exit')
  stage.proxy.process.kill('SIGTERM')
  while (!stage.proxy.output().includes('draining')) await new Promise(resolve => setTimeout(resolve, 5))
  // It says so before its sockets are closed.
  const knock = async () => await openPlain(stage.proxy, stage.guest).then(late => {
    late.destroy()
    return 'connected'
  }, (error: NodeJS.ErrnoException) => error.code)
  let outcome = await knock()
  for (let tries = 0; tries < 500 && outcome !== 'ECONNREFUSED'; tries++) {
    await new Promise(resolve => setTimeout(resolve, 10))
    outcome = await knock()
  }
  t.equal(outcome, 'ECONNREFUSED')
  far?.end('last')
  t.equal((await answer).text, 'first last')
  t.same(await exited, [0, null])
  const next = await startProxy({ roots: [], resolver: stage.names.server, httpPort: 80, httpsPort: stage.port, folder: stage.proxy.folder })
  t.teardown(async () => await next.stop())
  t.same((await next.audit(`vm-${stage.guest}`)).map(entry => entry.seq), [1, 2])
  await next.policy(vmPolicy(stage.guest))
  await ask(next, stage.guest, { name: HOST, headers: { host: 'wrong.test' } })
  t.same((await next.audited(`vm-${stage.guest}`, entries => entries.length > 2)).map(entry => entry.seq), [1, 2, 3])
})

t.test('P22: with inherited sockets a restart under load refuses no connection, and their backlog stays 1024', async (t) => {
  const stage = await setStage(t)
  await stage.origin(100)
  const proxy = await startProxy({ roots: [stage.authority.certificatePem], resolver: stage.names.server, httpPort: 80, httpsPort: stage.port, held: true, limits: { drainMs: 10_000 } })
  t.teardown(async () => await proxy.stop())
  await proxy.policy(vmPolicy(stage.guest, [{}]))
  const ca = await proxy.ca()
  let served = 0
  const stop = new AbortController()
  const failures: string[] = []
  const workers = Array.from({ length: 4 }, async () => {
    while (!stop.signal.aborted) {
      try {
        const socket = await openTls(proxy, stage.guest, HOST, { ca })
        const bytes = await exchangeBytes(socket, `GET / HTTP/1.1\r\nHost: ${stage.host(HOST)}\r\nConnection: close\r\n\r\n`)
        if (bytes.startsWith('HTTP/1.1 200 ')) served++
        else failures.push(bytes)
      } catch (error) {
        failures.push(String(error))
      }
    }
  })
  const pids = () => [...proxy.output().matchAll(/"pid":(\d+)/g)].map(match => Number(match[1]))
  const until = async (enough: () => boolean) => { await eventually('enough was served', () => enough() || failures.length > 0, { pollMs: 5 }) }
  await until(() => served > 20)
  process.kill(pids()[0] ?? 0, 'SIGTERM')
  await until(() => pids().length === 2)
  await proxy.policy(vmPolicy(stage.guest, [{}]))
  const before = served
  await until(() => served > before + 20)
  stop.abort()
  await Promise.all(workers)
  t.same(failures, [])
  t.ok(served > 40)
  for (const port of [proxy.ports.http, proxy.ports.https]) {
    const { stdout } = await run('ss', ['--listening', '--numeric', '--no-header', '--tcp', 'src', `${proxy.address}:${port}`])
    // Of a listening socket the second number is its backlog.
    t.match(stdout, /^LISTEN\s+\d+\s+1024\s/)
  }
})
