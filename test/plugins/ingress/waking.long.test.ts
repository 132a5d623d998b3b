// Requests that wake instances: real nginx, the real plugins instances and ingress, and machines that are scripted; their programs listen on addresses of this machine's loopback.
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { copyOfData } from '../instances/crash.ts'
import { eventually } from '../../helpers/eventually.ts'
import { PROGRAM, startIngress, type IngressApp, type IngressOptions, type Reply } from './app.ts'
import { skipReason } from './stage.ts'

interface WakingApp extends IngressApp {
  /** an instance that sleeps, and an ingress for NAME.test */
  sleeper (name: string, fields?: Record<string, unknown>): Promise<string>
}

async function start (t: Test, options: IngressOptions = {}): Promise<WakingApp> {
  const app = await startIngress(t, options)
  return {
    ...app,
    async sleeper (name, fields = {}) {
      const id = await app.makeGuest(name, fields)
      const made = await app.call('POST', '/ingresses', { name, rules: [{ match: { hostname: `${name}.test` }, target: { instance: name, port: PROGRAM } }] })
      if (made.status !== 201) throw new Error(made.text)
      const standby = await app.call('POST', `/instances/${name}/standby`)
      if (standby.status !== 200) throw new Error(standby.text)
      return id
    }
  }
}

const AT_ONCE = 8
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
  const { sleeper, ask, host, call, place } = await start(t, { config: { waking: { maxWaiting: 3 } } })
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
  const gone = request({ host: place.address, port: place.http, headers: { host: 'web.test' }, agent: false })
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
  const before = await start(t, { config: { waking: { concurrency: AT_ONCE } } })
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
  // All that go on at a time are held: the server that counts as killed begins no more.
  await eventually('as many wakings as there may be', () => begun === 2 + AT_ONCE)
  const dataDir = await copyOfData(t, before.dataDir)
  host.onStep = undefined
  const after = await start(t, { host, dataDir, place: { ...before.place, address: '127.0.0.2' } })
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
