// A plugin can neither provide nor read what its manifest does not declare.
import { createContainer, asValue, type AwilixContainer } from 'awilix'
import { pino } from 'pino'
import t from 'tap'
import { Type } from 'typebox'
import type { EventBus } from '../../../core/contracts/services.ts'
import { createEventBus } from '../../../core/jobs/events.ts'
import { builtInFolder, findBuiltIns, importPlugin } from '../../../core/plugins/discover.ts'
import type { Created, PluginManifest, ServiceKey, SlotName } from '../../../core/plugins/manifest.ts'
import { cradleFor, registerCreated, registerSlot } from '../../../core/plugins/registrar.ts'

declare module '../../../core/contracts/services.ts' {
  interface DomainEvents { 'test.happened': { readonly value: number } }
}

declare module '../../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly testAlpha: { readonly name: string }
    readonly testBeta: { readonly name: string }
  }
  interface Slots { readonly testSlot: ReadonlyMap<string, { readonly n: number }> }
}

const manifest = (parts: Partial<PluginManifest>): PluginManifest =>
  ({ id: 'one', provides: [], requires: [], config: Type.Object({}, { additionalProperties: false }), ...parts })
const container = (): AwilixContainer => createContainer({ injectionMode: 'PROXY', strict: true })
const always = (): boolean => true

t.test('declared keys are read, undeclared ones throw with the plugin and the key', async (t) => {
  const services = container().register({ testAlpha: asValue({ name: 'alpha' }), testBeta: asValue({ name: 'beta' }) })
  const deps = cradleFor(services, manifest({ requires: ['testAlpha'] }), always)
  t.equal(deps.testAlpha.name, 'alpha')
  t.throws(() => deps.testBeta, { message: /^plugin one reads "testBeta", which its manifest does not declare/ })
  t.strictSame(Object.keys(deps), ['testAlpha'])
  t.equal('testBeta' in deps, false)
  t.throws(() => Object.assign(deps, { testAlpha: 1 }), { message: /may not set "testAlpha"/ })
})

t.test('the services can be destructured, awaited and inspected without being taken for undeclared reads', async (t) => {
  const deps = cradleFor(container().register({ testAlpha: asValue({ name: 'alpha' }) }), manifest({ requires: ['testAlpha'] }), always)
  const { testAlpha } = await Promise.resolve(deps)
  t.equal(testAlpha.name, 'alpha')
  t.equal(JSON.stringify({ ...deps }), '{"testAlpha":{"name":"alpha"}}')
})

t.test('an optional key is undefined unless its supplier has started', async (t) => {
  const services = container().register({ testAlpha: asValue({ name: 'alpha' }) })
  t.equal(cradleFor(services, manifest({ optional: ['testAlpha'] }), () => false).testAlpha, undefined)
  t.equal(cradleFor(services, manifest({ optional: ['testAlpha'] }), always).testAlpha.name, 'alpha')
})

t.test('what a plugin made is there for others under the keys of its manifest', async (t) => {
  const services = container()
  registerCreated(services, manifest({ provides: ['testAlpha'] }), { services: { testAlpha: { name: 'made' } } })
  t.equal(cradleFor(services, manifest({ id: 'two', requires: ['testAlpha'] }), always).testAlpha.name, 'made')
  t.throws(() => cradleFor(services, manifest({ provides: ['testAlpha'] }), always).testAlpha, { message: /reads "testAlpha", which its manifest does not declare/ }, 'its own it has already')
})

t.test('what is not in the manifest, and a promise that is not kept, are refused, and nothing is registered', async (t) => {
  const services = container()
  const fills = { slot: 'testSlot', name: 'first' } as const
  const refused = (parts: Partial<PluginManifest>, created: Created, message: string): void => {
    t.throws(() => { registerCreated(services, manifest(parts), created) }, { message })
  }
  refused({ provides: ['testAlpha'] }, { services: { testAlpha: { name: '' }, testBeta: { name: '' } } }, 'its create returned "testBeta", which its manifest does not provide')
  refused({ provides: ['testAlpha', 'testBeta'] }, { services: { testBeta: { name: '' } } }, 'its manifest promises testAlpha, which its create did not return')
  refused({ provides: ['testAlpha'] }, {}, 'its manifest promises testAlpha, which its create did not return')
  refused({}, { filling: 1 }, 'its create returned a filling, but its manifest fills no slot')
  refused({ fills }, {}, 'its manifest promises to fill the slot "testSlot", and its create returned no filling')
  t.strictSame(Object.keys(services.registrations), [])
})

t.test('a slot is a map of the started fillers', async (t) => {
  const services = container()
  const slot: SlotName = 'testSlot'
  for (const [n, name] of ['first', 'second', 'failed'].entries()) registerCreated(services, manifest({ id: name, fills: { slot, name } }), { filling: { n } })
  registerSlot(services, slot, () => ['first', 'second'])
  const required: ServiceKey | SlotName = 'testSlot'
  const { testSlot } = cradleFor(services, manifest({ requires: [required] }), always)
  t.strictSame([...testSlot], [['first', { n: 0 }], ['second', { n: 1 }]])
})

t.test('an event that the manifest does not declare is neither said nor heard', async (t) => {
  const bus = createEventBus(pino({ level: 'silent' }))
  const services = container().register({ events: asValue(bus) })
  const eventsOf = (parts: Partial<PluginManifest>): EventBus => cradleFor(services, manifest({ requires: ['events'], ...parts }), always).events
  const heard: unknown[] = []
  const listener = eventsOf({ id: 'listener', listens: ['test.happened'] })
  const stop = listener.on('test.happened', event => { heard.push(event) })
  eventsOf({ id: 'speaker', emits: ['test.happened'] }).emit('test.happened', { value: 1 })
  stop()
  eventsOf({ emits: ['test.happened'] }).emit('test.happened', { value: 2 })
  t.strictSame(heard, [{ value: 1 }])
  t.throws(() => { listener.emit('test.happened', { value: 3 }) }, { message: 'plugin listener says the event "test.happened", which its manifest does not declare in emits' })
  t.throws(() => eventsOf({ emits: ['test.happened'] }).on('test.happened', () => {}), { message: 'plugin one hears the event "test.happened", which its manifest does not declare in listens' })
})

t.test('what a built-in plugin hears, a built-in plugin says', async (t) => {
  const plugins = await Promise.all([...await findBuiltIns(builtInFolder)].map(async ([id, file]) => await importPlugin(id, file)))
  const said = new Set(plugins.flatMap(({ manifest: { emits = [] } }) => emits))
  for (const { manifest: { id, listens = [] } } of plugins) t.strictSame(listens.filter(name => !said.has(name)), [], id)
})
