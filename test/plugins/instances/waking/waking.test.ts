// The waking of instances for those who are called, on a scripted host: one restore for all who wait, what forbids it, and what a crash leaves.
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { definePlugin } from '../../../../core/plugins/manifest.ts'
import { Type } from 'typebox'
import type { InstanceWaking, Woken } from '../../../../plugins/instances/contract.ts'
import { LiveInstance } from '../../../../plugins/instances/model/live-instance.ts'
import { failOnce } from '../../../helpers/fail-once.ts'
import { startApp, type StartOptions, type TestApp } from '../app.ts'
import { crashAt } from '../crash.ts'
import { holdSave, holdStep } from '../hold-step.ts'
import { ScriptedHost } from '../scripted.ts'

interface WakingApp extends TestApp {
  wake (id: string, signal?: AbortSignal, caller?: string, port?: number): Promise<Woken>
}

async function start (t: Test, options: StartOptions = {}): Promise<WakingApp> {
  let waking: InstanceWaking | undefined
  const taker = definePlugin({
    manifest: { id: 'taker', provides: [], requires: ['waking'], config: Type.Object({}, { additionalProperties: false }) },
    create: (deps) => ({ async start () { waking = deps.waking } })
  })
  const app = await startApp(t, { ...options, plugins: [taker] })
  return {
    ...app,
    async wake (id, signal = new AbortController().signal, caller = '192.0.2.1', port) {
      if (waking === undefined) throw new Error('not started')
      return await waking.wake(id, { signal, caller, ...port === undefined ? {} : { port } })
    }
  }
}

async function asleep (t: Test, options: StartOptions & { fields?: Record<string, unknown> } = {}): Promise<WakingApp & { id: string }> {
  const { fields = {}, ...others } = options
  const host = new ScriptedHost()
  host.connect()
  const app = await start(t, { host, ...others })
  const id = await app.make('web', fields)
  await app.waitFor('web', 'Running')
  t.match(await app.call('POST', '/instances/web/standby'), { status: 200 })
  return { ...app, id }
}

/** How often the driver was asked for a step from now on. */
function count (host: ScriptedHost, wanted: string): () => number {
  let times = 0
  host.onStep = (step) => { if (step === wanted) times++ }
  return () => times
}

t.test('one restore serves all who wait for it meanwhile, and later callers are answered at once', async (t) => {
  const { wake, host, id, call } = await asleep(t)
  const restores = count(host, 'restore')
  const woken = await Promise.all(Array.from({ length: 200 }, async () => await wake(id)))
  t.equal(restores(), 1)
  t.ok(woken.every(({ address }) => address !== undefined && address === host.network?.addressOf(id)?.ip))
  t.match((await call('GET', '/instances/web')).body, { state: 'Running' })
  await wake(id)
  t.equal(restores(), 1)
})

t.test('who is called at a port of an instance that was just woken is waited for until he listens, once for all, and no longer asked then', async (t) => {
  const { wake, host, id } = await asleep(t)
  let tries = 0
  host.onConnect = async () => ++tries > 3 ? new PassThrough() : undefined
  const both = [wake(id, undefined, undefined, 80), wake(id, undefined, undefined, 80)]
  await Promise.all(both)
  t.equal(tries, 4)
  await wake(id, undefined, undefined, 80)
  t.equal(tries, 4)
  await wake(id)
  t.equal(tries, 4)
  host.onConnect = async () => undefined
  await t.rejects(wake(id, AbortSignal.timeout(200), undefined, 82), { name: 'TimeoutError' }, 'who leaves waits no longer')
  host.onConnect = async () => { throw new Error('something else') }
  await wake(id, undefined, undefined, 83)
})

t.test('twenty sleepers at once are each woken once, more than are woken at a time', async (t) => {
  const host = new ScriptedHost()
  const { make, wake, waitFor, call } = await start(t, { host, config: { waking: { concurrency: 3 } } })
  const ids = await Promise.all(Array.from({ length: 20 }, async (_, n) => await make(`web-${n}`)))
  for (const id of ids) {
    await waitFor(id, 'Running')
    t.match(await call('POST', `/instances/${id}/standby`), { status: 200 })
  }
  let now = 0
  let most = 0
  let restores = 0
  host.onStep = (step) => {
    if (step === 'restore') {
      restores++
      most = Math.max(most, ++now)
    }
    if (step === 'restored') now--
  }
  await Promise.all(ids.flatMap((id) => Array.from({ length: 5 }, async () => await wake(id))))
  t.equal(restores, 20)
  t.ok(most <= 3, `${most} at a time`)
  for (const id of ids) t.match((await call('GET', `/instances/${id}`)).body, { state: 'Running' })
})

t.test('no more callers wait than allowed, and who leaves makes room and ends nothing', async (t) => {
  const { wake, host, id } = await asleep(t, { config: { waking: { maxWaiting: 2 } } })
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  host.onStep = async (step) => { if (step === 'restore') await held }
  const leaving = new AbortController()
  const first = wake(id)
  const second = wake(id, leaving.signal)
  await t.rejects(wake(id), { code: 'too_many_waiting', statusCode: 503, retryAfterSeconds: 1 })
  leaving.abort(new Error('gone'))
  await t.rejects(second, { message: 'gone' })
  const third = wake(id)
  go()
  await Promise.all([first, third])
})

t.test('a client who calls many sleepers is waited for by nobody else, and holds so many places and no more', async (t) => {
  const host = new ScriptedHost()
  const { make, wake, waitFor, call } = await start(t, { host, config: { waking: { concurrency: 1, maxWaitingPerClient: 6, maxWaitingInAll: 8 } } })
  const ids = await Promise.all(Array.from({ length: 8 }, async (_, n) => await make(`web-${n}`)))
  for (const id of ids) {
    await waitFor(id, 'Running')
    t.match(await call('POST', `/instances/${id}/standby`), { status: 200 })
  }
  const idle = (): AbortSignal => new AbortController().signal
  const [greedy, modest, third] = ['192.0.2.1', '192.0.2.2', '192.0.2.3']
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  host.onStep = async (step) => { if (step === 'restore') await held }
  const order: string[] = []
  const noted = async (index: number, caller: string): Promise<void> => {
    await wake(ids[index] ?? '', idle(), caller)
    order.push(`${caller} ${index}`)
  }
  const all = [0, 1, 2, 3, 4, 5].map(async (index) => await noted(index, greedy))
  await t.rejects(wake(ids[6] ?? '', idle(), greedy), { code: 'too_many_waiting', message: '6 requests of the same client wait for instances to be awake already' })
  // Which the first one waits for as well, at the end of his line.
  all.push(noted(5, modest), noted(6, modest))
  await t.rejects(wake(ids[7] ?? '', idle(), third), { code: 'too_many_waiting', message: '8 callers wait for instances to be awake already' })
  go()
  await Promise.all(all)
  t.same(order.filter((line) => line.startsWith(modest)), [`${modest} 5`, `${modest} 6`])
  t.ok(order.indexOf(`${modest} 5`) <= 3 && order.indexOf(`${modest} 6`) <= 5, order.join(', '))
  t.equal(order.length, 8)
  await wake(ids[7] ?? '', idle(), third)
})

t.test('the policy of an instance says what wakes it, and can be changed', async (t) => {
  const { wake, id, call, waitFor } = await asleep(t, { fields: { wake: 'never' } })
  t.match((await call('GET', '/instances/web')).body, { wake: 'never' })
  await t.rejects(wake(id), { code: 'cannot_be_woken', statusCode: 503, message: 'instance web cannot be woken: it is in Standby, and its wake is never' })
  t.match(await call('PATCH', '/instances/web', { wake: 'standby' }), { status: 200, body: { wake: 'standby' } })
  await wake(id)
  t.match(await call('POST', '/instances/web/stop'), { status: 200 })
  await t.rejects(wake(id), { code: 'cannot_be_woken', message: /it is Stopped, and its wake is standby, not always/ })
  t.match(await call('PATCH', '/instances/web', { wake: 'always' }), { status: 200 })
  await wake(id)
  t.match((await waitFor('web', 'Running')).body, { state: 'Running' })
  t.match(await call('PATCH', '/instances/web', { wake: 'sometimes' }), { status: 400, body: { code: 'invalid_request', message: /wake/ } })
  await t.rejects(wake('nothing'), { code: 'not_found' })
})

t.test('a failed restore answers all who wait, and for a moment those who come after, without another one', async (t) => {
  const { wake, host, id, call } = await asleep(t)
  const restores = count(host, 'restore')
  host.failures.set('restore', new Error('no memory today'))
  const results = await Promise.allSettled([wake(id), wake(id)])
  for (const result of results) t.match(result, { status: 'rejected', reason: { code: 'cannot_be_woken', message: /^instance web cannot be woken: / } })
  await t.rejects(wake(id))
  t.equal(restores(), 1)
  host.failures.clear()
  t.match(await call('PATCH', '/instances/web', { wake: 'standby' }), { status: 200 })
  await wake(id)
  t.equal(restores(), 2, 'a change of the instance ends that')
})

t.test('a caller during a standby gets the instance as it is after it', async (t) => {
  const host = new ScriptedHost()
  const { make, wake, waitFor, call } = await start(t, { host })
  const id = await make('web')
  await waitFor('web', 'Running')
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  const reached = new Promise<void>((resolve) => {
    host.onStep = async (step) => {
      if (step !== 'sleep') return
      resolve()
      await held
    }
  })
  const standby = call('POST', '/instances/web/standby')
  await reached
  const waiting = wake(id)
  go()
  t.match(await standby, { status: 200 })
  await waiting
  t.match((await call('GET', '/instances/web')).body, { state: 'Running' })
  t.ok(host.vm.restoredFrom, 'it was restored')
})

t.test('a caller is not sent to a VM from the first step of its stop, delete or end for its health on, and gets the instance as it is after it', async (t) => {
  for (const what of ['stop', 'delete', 'health'] as const) {
    const host = new ScriptedHost()
    let isHealthy = true
    host.onExec = (session) => { session.end({ exitCode: isHealthy ? 0 : 1, signal: 0 }) }
    const { make, wake, waitFor, call } = await start(t, { host })
    const id = await make('web', { wake: 'always', restart_policy: { policy: 'always', backoff: '1s' }, ...what === 'health' ? { health_check: { type: 'exec', exec: { command: ['true'] }, interval: '1s', start_period: '0s', failure_threshold: 1 } } : {} })
    await waitFor('web', 'Running')
    const { vm } = host
    const { reached, go } = holdSave(t)
    isHealthy = false
    const work = what === 'health' ? undefined : what === 'stop' ? call('POST', '/instances/web/stop') : call('DELETE', '/instances/web')
    await reached
    t.match((await call('GET', '/instances/web')).body, { state: 'Running' }, what)
    let isAnswered = false
    const waiting = wake(id).finally(() => { isAnswered = true })
    waiting.catch(() => {})
    await sleep(50)
    t.notOk(isAnswered, `${what}: a caller waits for its end`)
    isHealthy = true
    go()
    if (what === 'delete') await t.rejects(waiting, { code: 'not_found' })
    else {
      await waiting
      t.not(host.vm, vm, `${what}: it was started again for the caller`)
    }
    t.equal(vm.state.status, 'gone', what)
    t.match((await work)?.status, what === 'health' ? undefined : what === 'stop' ? 200 : 204)
  }
})

t.test('a caller of an instance whose stop the server before had begun, and whose guest does not answer yet, gets it as it is after that', async (t) => {
  const before = await start(t)
  const { host } = before
  const id = await before.make('web', { wake: 'always', restart_policy: { policy: 'always' } })
  await before.waitFor('web', 'Running')
  const { vm } = host
  const after = await crashAt<WakingApp>(t, before, 'shutdown', async () => await before.call('POST', '/instances/web/stop'), async (t, options) => {
    // A guest that has not greeted.
    Object.assign(vm, { phase: 'waiting', workload: undefined })
    host.behaviour = 'boot-only'
    return await start(t, options)
  })
  t.match((await after.call('GET', '/instances/web')).body, { state: 'Running' })
  const waiting = after.wake(id)
  t.equal(await Promise.race([waiting.then(() => 'answered'), sleep(100, 'waits')]), 'waits')
  host.behaviour = 'run'
  vm.bus.emit('unlink')
  await waiting
  t.not(host.vm, vm)
  t.equal(vm.state.status, 'gone')
})

t.test('a caller of an instance whose stop or delete could not be stored gets it as it is, which is running', async (t) => {
  const host = new ScriptedHost()
  const { make, wake, waitFor, call } = await start(t, { host })
  const id = await make('web', { restart_policy: { policy: 'always' } })
  await waitFor('web', 'Running')
  for (const [verb, url] of [['POST', '/instances/web/stop'], ['DELETE', '/instances/web']] as const) {
    failOnce(t, LiveInstance.prototype, 'save', { done: false })
    t.equal((await call(verb, url)).status, 503)
    await wake(id, AbortSignal.timeout(1000))
  }
})

t.test('a caller of an instance that runs is answered at once, whatever else is done to it, and while its VM is paused for that as soon as it goes on', async (t) => {
  const host = new ScriptedHost()
  const { make, wake, waitFor, call } = await start(t, { host })
  const id = await make('web')
  await waitFor('web', 'Running')
  const soon = async (): Promise<unknown> => await wake(id, AbortSignal.timeout(5000))
  const copying = holdStep(t, host, 'flush')
  const fork = call('POST', '/instances/web/fork', { name: 'twin', from_running: true })
  await copying.reached
  await soon()
  const capturing = holdStep(t, host, 'capture')
  copying.go()
  await capturing.reached
  t.match((await call('GET', '/instances/web')).body, { state: 'Paused' })
  const waiting = soon()
  capturing.go()
  await waiting
  t.match(await fork, { status: 201 })
})

t.test('instances that are busy with something else take no turns from others, and who waits for them waits for no longer than allowed', async (t) => {
  const host = new ScriptedHost()
  host.connect()
  const { make, wake, waitFor, call } = await start(t, { host, config: { waking: { concurrency: 1, timeout: '3s' } } })
  const [busy, other] = [await make('busy'), await make('other')]
  for (const id of [busy, other]) {
    await waitFor(id, 'Running')
    t.match(await call('POST', `/instances/${id}/standby`), { status: 200 })
  }
  // It holds the lock of its source until it has an address.
  const { reached, go } = holdStep(t, host, 'allocate')
  const fork = call('POST', '/instances/busy/fork', { name: 'twin', target_state: 'Stopped' })
  await reached
  const late = t.rejects(wake(busy), { code: 'wake_timeout', statusCode: 503 })
  await wake(other, AbortSignal.timeout(2000))
  await late
  go()
  t.match(await fork, { status: 201 })
  t.match((await call('GET', '/instances/busy')).body, { state: 'Standby' }, 'it is not woken for nobody')
  t.match(await call('PATCH', '/instances/busy', { wake: 'standby' }), { status: 200 }, 'which ends the answer that others get')
  await wake(busy)
})

t.test('a program that is ending as somebody calls is started again for him, where that is allowed', async (t) => {
  const host = new ScriptedHost()
  const { make, wake, waitFor, call } = await start(t, { host })
  for (const [name, allowed] of [['always', true], ['standby', false]] as const) {
    const id = await make(name, { wake: name })
    await waitFor(name, 'Running')
    const { vm } = host
    vm.bus.emit('exited', { exitCode: 0, signal: 0, oom: false })
    t.match((await call('GET', `/instances/${name}`)).body, { state: 'Shutdown' })
    const waking = wake(id)
    waking.catch(() => {})
    await new Promise((resolve) => setImmediate(resolve))
    await vm.exit()
    if (allowed) {
      await waking
      t.match((await call('GET', `/instances/${name}`)).body, { state: 'Running' })
      t.not(host.vm, vm)
    } else await t.rejects(waking, { code: 'cannot_be_woken', message: /it is Stopped, and its wake is standby, not always/ })
  }
})

for (const step of ['restore', 'restored', 'wake', 'woken'] as const) {
  t.test(`a server that dies at "${step}" of a waking leaves an instance that the next one wakes`, async (t) => {
    const before = await asleep(t)
    const after = await crashAt<WakingApp>(t, before, step, async () => { await before.wake(before.id).catch(() => {}) }, start)
    await after.wake(before.id)
    t.match((await after.call('GET', '/instances/web')).body, { state: 'Running' })
  })
}
