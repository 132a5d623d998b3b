// Requests that wake instances: real nginx, the real plugins instances and ingress, and machines that are scripted; their programs listen on addresses of this machine's loopback.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { plugin } from '../../../plugins/ingress/index.ts'
import { startApp, type StartOptions, type TestApp } from '../instances/app.ts'
import { copyOfData } from '../instances/crash.ts'
import { ScriptedHost } from '../instances/scripted.ts'
import { eventually } from '../../helpers/eventually.ts'
import { freePort } from '../../proxy/helpers/network.ts'
import { skipReason } from './stage.ts'

interface Reply { readonly status: number, readonly body: string }

interface WakingApp extends TestApp {
  readonly port: number
  /** an instance whose program answers with its name, and an ingress for NAME.test */
  sleeper (name: string, fields?: Record<string, unknown>): Promise<string>
  ask (name: string, path?: string): Promise<Reply>
}

const PROGRAM = 8080

/** @param place another address for the server that comes after one that is not ended in truth */
async function start (t: Test, options: StartOptions = {}, place: { readonly address: string, readonly port: number } | undefined = undefined): Promise<WakingApp> {
  const host = options.host ?? new ScriptedHost()
  const network = host.connect()
  network.namespace = '/proc/self/ns/net'
  const { address, port } = place ?? { address: '127.0.0.1', port: await freePort('127.0.0.1') }
  const app = await startApp(t, { ...options, host, plugins: [plugin], sections: { ingress: { config: { listen: { address, http: [port] }, limits: { workers: 1, connections: 1024 } } } }, server: { stopInstancesOnExit: true } })
  return {
    ...app,
    port,
    async sleeper (name, fields = {}) {
      const id = await app.make(name, fields)
      const known = network.addressOf(id)
      if (known === undefined) throw new Error('no address')
      const ip = `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(1, 255)}`
      network.addresses.set(id, { ...known, ip })
      const server = createServer((asked, response) => { response.end(`${name} ${asked.url ?? ''}`) }).listen(PROGRAM, ip)
      await once(server, 'listening')
      t.teardown(() => { server.close() })
      await app.waitFor(name, 'Running')
      const made = await app.call('POST', '/ingresses', { name, rules: [{ match: { hostname: `${name}.test` }, target: { instance: name, port: PROGRAM } }] })
      if (made.status !== 201) throw new Error(made.text)
      const standby = await app.call('POST', `/instances/${name}/standby`)
      if (standby.status !== 200) throw new Error(standby.text)
      return id
    },
    ask: async (name, path = '/') => await askAt(address, port, name, path)
  }
}

async function askAt (host: string, port: number, name: string, path: string): Promise<Reply> {
  const asked = request({ host, port, path, headers: { host: `${name}.test` }, agent: false })
  asked.end()
  const [response] = await once(asked, 'response')
  return { status: response.statusCode, body: await text(response) }
}

const names = Array.from({ length: 20 }, (_, index) => `sleeper${index}`)

t.test('20 sleepers that are called at once are woken once each, and all callers are served', { skip: skipReason(), timeout: 300_000 }, async (t) => {
  const { sleeper, ask, host } = await start(t)
  for (const name of names) await sleeper(name)
  const restored: string[] = []
  host.onStep = (step, vm) => { if (step === 'restore') restored.push(vm?.spec.directory ?? 'new') }
  const answers = await Promise.all(names.flatMap((name) => Array.from({ length: 10 }, async (_, n) => await ask(name, `/${n}`))))
  t.same(answers, names.flatMap((name) => Array.from({ length: 10 }, (_, n) => ({ status: 200, body: `${name} /${n}` }))))
  t.equal(restored.length, 20)
})

t.test('more callers than may wait are told so at once, one that may not be woken says why, and callers who left cost nothing', { skip: skipReason(), timeout: 300_000 }, async (t) => {
  const { sleeper, ask, host, call, port } = await start(t, { config: { waking: { maxWaiting: 3 } } })
  await sleeper('web')
  await sleeper('fixed', { wake: 'never' })
  t.match(await ask('fixed'), { status: 503, body: /fixed cannot be woken/ })
  t.match((await call('GET', '/instances/fixed')).body, { state: 'Standby' })
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  let restores = 0
  host.onStep = async (step) => {
    if (step !== 'restore') return
    restores++
    await held
  }
  const gone = request({ host: '127.0.0.1', port, headers: { host: 'web.test' }, agent: false })
  gone.on('error', () => {})
  gone.end()
  await eventually('the restore', () => restores === 1)
  const outcomes: Reply[] = []
  const all = Promise.all(Array.from({ length: 6 }, async (_, n) => { outcomes.push(await ask('web', `/${n}`)) }))
  await eventually('those who may not wait', () => outcomes.length >= 4)
  t.ok(outcomes.every(({ status, body }) => status === 503 && body.includes('3 callers wait for that already')), JSON.stringify(outcomes))
  gone.destroy()
  go()
  await all
  t.equal(outcomes.filter(({ status }) => status === 200).length, 2)
  t.equal(restores, 1)
})

t.test('a server that dies while it wakes 20 sleepers is followed by one that wakes each that is still asleep, once, and serves', { skip: skipReason(), timeout: 300_000 }, async (t) => {
  const before = await start(t)
  for (const name of names) await before.sleeper(name)
  const { host } = before
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  let begun = 0
  host.onStep = async (step) => {
    if (step !== 'restore') return
    // Some get through, the others are cut off.
    if (++begun <= 2) return
    await held
    throw new Error('the server was killed here')
  }
  const cut = Promise.allSettled(names.map(async (name) => await before.ask(name)))
  await eventually('some wakings', () => begun >= 3)
  const dataDir = await copyOfData(t, before.dataDir)
  host.onStep = undefined
  const after = await start(t, { host, dataDir }, { address: '127.0.0.2', port: before.port })
  let restores = 0
  host.onStep = (step) => { if (step === 'restore') restores++ }
  const asleep = JSON.parse((await after.call('GET', '/instances?limit=100')).text).filter(({ state }: { state: string }) => state === 'Standby').length
  const answers = await Promise.all(names.flatMap((name) => [after.ask(name), after.ask(name)]))
  t.ok(answers.every(({ status }) => status === 200), JSON.stringify(answers.filter(({ status }) => status !== 200)))
  t.equal(restores, asleep)
  t.ok(asleep >= 1 && asleep < 20, `${asleep} were asleep still`)
  go()
  await cut
})
