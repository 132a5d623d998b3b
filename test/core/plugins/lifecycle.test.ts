// Who starts, in which order everything stops, and what a failure leaves behind.
import Fastify, { type FastifyInstance } from 'fastify'
import { pino } from 'pino'
import t from 'tap'
import { Type } from 'typebox'
import { createContainer } from 'awilix'
import { Lifecycle, type PlannedPlugin } from '../../../core/plugins/lifecycle.ts'
import { SkipPlugin, type AllDeps, type Created, type Plugin, type PluginManifest } from '../../../core/plugins/manifest.ts'
import { PluginBoard } from '../../../core/plugins/reports.ts'

declare module '../../../core/plugins/manifest.ts' {
  interface Cradle { readonly testOne: string, readonly testTwo: string }
  interface Slots { readonly testDrivers: ReadonlyMap<string, string> }
}

interface Parts extends Partial<Omit<PluginManifest, 'config'>>, Pick<Created, 'routes' | 'stop'> {
  onFailure?: 'abort' | 'continue'
  start? (signal: AbortSignal, deps: AllDeps): Promise<void>
}

/** A plugin that writes down what happens to it, and makes what it promises. */
function recording (id: string, events: string[], parts: Parts = {}): PlannedPlugin {
  const { provides = [], requires = [], optional, fills, onFailure = 'abort', start, stop, routes } = parts
  const plugin: Plugin = {
    manifest: { id, provides, requires, optional, fills, config: Type.Object({}, { additionalProperties: false }) },
    create (deps) {
      events.push(`create ${id}`)
      return {
        services: Object.fromEntries(provides.map(key => [key, `${key} of ${id}`])),
        filling: fills === undefined ? undefined : `driver ${fills.name}`,
        async start (signal) {
          events.push(`start ${id}`)
          await start?.(signal, deps)
        },
        async stop () {
          events.push(`stop ${id}`)
          await stop?.()
        },
        routes
      }
    }
  }
  return { plugin, config: {}, onFailure }
}

function lifecycleOf (plugins: PlannedPlugin[], limits = { startTimeoutMs: 10_000, stopTimeoutMs: 10_000 }) {
  const board = new PluginBoard(plugins.map(planned => planned.plugin.manifest.id), [])
  const lines: { level: number, plugin: string, msg: string }[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => { lines.push(JSON.parse(line)) } })
  const container = createContainer({ injectionMode: 'PROXY', strict: true })
  return { board, lines, container, lifecycle: new Lifecycle({ plugins, container, coreKeys: ['log'], board, log, ...limits }) }
}

t.test('each plugin is made and started in order, and all are stopped in the exact reverse order', async (t) => {
  const events: string[] = []
  const { lifecycle, board } = lifecycleOf(['a', 'b', 'c'].map(id => recording(id, events)))
  await lifecycle.start()
  t.strictSame(board.list().map(report => [report.id, report.state, typeof report.startMs]), [['a', 'started', 'number'], ['b', 'started', 'number'], ['c', 'started', 'number']])
  await lifecycle.stop()
  t.strictSame(events, ['create a', 'start a', 'create b', 'start b', 'create c', 'start c', 'stop c', 'stop b', 'stop a'])
  await lifecycle.stop()
  t.equal(events.length, 9, 'a second stop does nothing')
})

t.test('a failure midway stops what had started, the failed one first, and starts no other', async (t) => {
  const events: string[] = []
  const { lifecycle, board } = lifecycleOf([
    recording('a', events), recording('b', events),
    recording('c', events, { async start () { throw new Error('no room') } }), recording('d', events)
  ])
  await t.rejects(lifecycle.start(), { name: 'PluginStartFailed', message: 'plugin c did not start: no room' })
  t.strictSame(events, ['create a', 'start a', 'create b', 'start b', 'create c', 'start c', 'stop c', 'stop b', 'stop a'])
  t.match(board.get('c'), { state: 'failed', reason: 'no room' })
})

t.test('a start that takes too long fails, and its signal aborts', async (t) => {
  const events: string[] = []
  const { lifecycle } = lifecycleOf([recording('slow', events, {
    start: signal => new Promise(() => { signal.addEventListener('abort', () => events.push('told')) })
  })], { startTimeoutMs: 30, stopTimeoutMs: 1_000 })
  await t.rejects(lifecycle.start(), { message: 'plugin slow did not start: starting plugin slow took longer than 0.03 s' })
  t.strictSame(events, ['create slow', 'start slow', 'told', 'stop slow'])
})

t.test('a stop that fails or takes too long is logged, and the next one stops all the same', async (t) => {
  const events: string[] = []
  const { lifecycle, lines } = lifecycleOf([
    recording('a', events),
    recording('b', events, { stop: () => new Promise(() => undefined) }),
    recording('c', events, { async stop () { throw new Error('stuck') } })
  ], { startTimeoutMs: 1_000, stopTimeoutMs: 30 })
  await lifecycle.start()
  await lifecycle.stop()
  t.strictSame(events.slice(-3), ['stop c', 'stop b', 'stop a'])
  t.strictSame(lines.filter(line => line.level >= 50).map(line => [line.plugin, line.msg]), [['c', 'plugin did not stop cleanly'], ['b', 'plugin did not stop cleanly']])
})

t.test('a skipped plugin blocks what requires it, in a chain, and leaves the others alone', async (t) => {
  const events: string[] = []
  const { lifecycle, board } = lifecycleOf([
    recording('a', events, { provides: ['testOne'], async start () { throw new SkipPlugin('no /dev/kvm') } }),
    recording('b', events, { provides: ['testTwo'], requires: ['testOne'] }),
    recording('c', events, { requires: ['testTwo'] }),
    recording('d', events, { optional: ['testOne'], async start (_signal, deps) { events.push(`optional ${String(deps.testOne)}`) } })
  ])
  await lifecycle.start()
  t.strictSame(events.filter(event => !event.startsWith('create')), ['start a', 'stop a', 'start d', 'optional undefined'])
  t.match(board.get('a'), { state: 'skipped', reason: 'no /dev/kvm' })
  t.match(board.get('b'), { state: 'blocked', reason: '"testOne" is not there: plugin a is skipped (no /dev/kvm)' })
  t.match(board.get('c'), { state: 'blocked', reason: /"testTwo" is not there: plugin b is blocked/ })
  t.ok(board.isStarted('d'))
  await lifecycle.stop()
})

t.test('with onFailure continue the server goes on without the plugin and what requires it', async (t) => {
  const events: string[] = []
  const { lifecycle, board } = lifecycleOf([
    recording('a', events, { provides: ['testOne'], onFailure: 'continue', async start () { throw new Error('broken disk') } }),
    recording('b', events, { requires: ['testOne'] }),
    recording('c', events)
  ])
  await lifecycle.start()
  t.strictSame(board.list().map(report => report.state), ['failed', 'blocked', 'started'])
  t.equal(board.get('a')?.reason, 'broken disk')
  await lifecycle.stop()
})

t.test('one working filler is enough for a slot; with none the requirer is blocked', async (t) => {
  const skip = async (): Promise<void> => { throw new SkipPlugin('not on this host') }
  const run = async (second: Parts): Promise<{ seen: unknown, state: string | undefined }> => {
    let seen: unknown
    const { lifecycle, board } = lifecycleOf([
      recording('x', [], { fills: { slot: 'testDrivers', name: 'x' }, start: skip }),
      recording('y', [], { fills: { slot: 'testDrivers', name: 'y' }, ...second }),
      recording('z', [], { requires: ['testDrivers'], async start (_signal, { testDrivers }) { seen = [...testDrivers] } })
    ])
    await lifecycle.start()
    await lifecycle.stop()
    return { seen, state: board.get('z')?.state }
  }
  t.strictSame(await run({}), { seen: [['y', 'driver y']], state: 'started' })
  t.strictSame(await run({ start: skip }), { seen: undefined, state: 'blocked' })
})

t.test('a stop during the start aborts the plugin that is starting and starts no other', async (t) => {
  const events: string[] = []
  const { lifecycle } = lifecycleOf([
    recording('a', events),
    recording('b', events, { onFailure: 'continue', start: () => { lifecycle.abort(new Error('asked to stop')); return new Promise(() => undefined) } }),
    recording('c', events)
  ])
  await t.rejects(lifecycle.start(), { message: /asked to stop/ })
  t.strictSame(events, ['create a', 'start a', 'create b', 'start b', 'stop b', 'stop a'])
})

t.test('routes of started plugins are mounted; routes that throw fail the start with the plugin named', async (t) => {
  const http = Fastify()
  t.teardown(() => http.close())
  const { lifecycle } = lifecycleOf([
    recording('a', [], { routes: async scope => { scope.get('/a', async () => 'a') } }),
    recording('b', [], { async start () { throw new SkipPlugin('') }, routes: async scope => { scope.get('/b', async () => 'b') } })
  ])
  await lifecycle.start()
  await lifecycle.mount(http)
  t.equal((await http.inject('/a')).statusCode, 200)
  t.equal((await http.inject('/b')).statusCode, 404)

  const broken = lifecycleOf([recording('c', [], { routes: async () => { throw new Error('bad path') } })])
  await broken.lifecycle.start()
  await t.rejects(broken.lifecycle.mount(Fastify()), { message: 'the routes of plugin c could not be mounted: bad path' })
})

t.test('routes that never come to their end fail the start with the plugin named, also those of a part, and so does a stop meanwhile', async (t) => {
  const never = async (): Promise<void> => await new Promise<void>(() => undefined)
  for (const routes of [never, async (scope: FastifyInstance) => { scope.register(never) }]) {
    const http = Fastify({ pluginTimeout: 0 })
    const { lifecycle } = lifecycleOf([recording('c', [], { routes })], { startTimeoutMs: 30, stopTimeoutMs: 1_000 })
    await lifecycle.start()
    await t.rejects(lifecycle.mount(http), { name: 'PluginStartFailed', message: 'the routes of plugin c could not be mounted: mounting them took longer than 0.03 s' })
    await http.close()
  }
  const http = Fastify({ pluginTimeout: 0 })
  const { lifecycle } = lifecycleOf([recording('c', [], { onFailure: 'continue', routes: async () => { lifecycle.abort(new Error('asked to stop')); await never() } })])
  await lifecycle.start()
  await t.rejects(lifecycle.mount(http), { message: /asked to stop/ })
  await http.close()
})
