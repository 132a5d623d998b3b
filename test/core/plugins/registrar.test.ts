// A plugin can neither register nor read what its manifest does not declare.
import { createContainer, asValue, type AwilixContainer } from 'awilix'
import t from 'tap'
import { Type } from 'typebox'
import type { AllDeps, PluginManifest, ServiceKey, SlotName } from '../../../core/plugins/manifest.ts'
import { cradleFor, registerSlot, registrarFor } from '../../../core/plugins/registrar.ts'

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

t.test('declared keys are read, undeclared ones throw with the plugin and the key', async t => {
  const services = container().register({ testAlpha: asValue({ name: 'alpha' }), testBeta: asValue({ name: 'beta' }) })
  const deps = cradleFor(services, manifest({ requires: ['testAlpha'] }), always)
  t.equal(deps.testAlpha.name, 'alpha')
  t.throws(() => deps.testBeta, { message: /^plugin one reads "testBeta", which its manifest does not declare/ })
  t.strictSame(Object.keys(deps), ['testAlpha'])
  t.equal('testBeta' in deps, false)
  t.throws(() => Object.assign(deps, { testAlpha: 1 }), { message: /may not set "testAlpha"/ })
})

t.test('the services can be destructured, awaited and inspected without being taken for undeclared reads', async t => {
  const deps = cradleFor(container().register({ testAlpha: asValue({ name: 'alpha' }) }), manifest({ requires: ['testAlpha'] }), always)
  const { testAlpha } = await Promise.resolve(deps)
  t.equal(testAlpha.name, 'alpha')
  t.equal(JSON.stringify({ ...deps }), '{"testAlpha":{"name":"alpha"}}')
})

t.test('an optional key is undefined unless its supplier has started', async t => {
  const services = container().register({ testAlpha: asValue({ name: 'alpha' }) })
  t.equal(cradleFor(services, manifest({ optional: ['testAlpha'] }), () => false).testAlpha, undefined)
  t.equal(cradleFor(services, manifest({ optional: ['testAlpha'] }), always).testAlpha.name, 'alpha')
})

t.test('a factory gets the services of its own plugin and runs once, when first read', async t => {
  const services = container().register({ testBeta: asValue({ name: 'beta' }) })
  const own = manifest({ provides: ['testAlpha'], requires: ['testBeta'] })
  const deps = cradleFor(services, own, always)
  const registrar = registrarFor(services, own, deps)
  let runs = 0
  registrar.provide('testAlpha', ({ testBeta }) => { runs += 1; return { name: `of ${testBeta.name}` } })
  registrar.verify()
  t.equal(runs, 0)
  t.equal(deps.testAlpha.name, 'of beta')
  t.equal(deps.testAlpha, deps.testAlpha)
  t.equal(runs, 1)
})

t.test('the registrar refuses undeclared keys and slots, a key twice, and a promise that is not kept', async t => {
  const services = container()
  const own = manifest({ provides: ['testAlpha'], fills: { slot: 'testSlot', name: 'first' } })
  const registrar = registrarFor(services, own, cradleFor(services, own, always))
  t.throws(() => registrar.provide('testBeta', () => ({ name: '' })), { message: 'plugin one registers "testBeta", which its manifest does not provide' })
  t.throws(() => registrar.fill('hypervisors', () => { throw new Error('never made') }), { message: 'plugin one fills the slot "hypervisors", which its manifest does not say' })
  t.throws(() => registrar.verify(), { message: 'its manifest promises testAlpha, testSlot:first, which it did not register' })
  registrar.provide('testAlpha', () => ({ name: '' }))
  t.throws(() => registrar.provide('testAlpha', () => ({ name: '' })), { message: 'plugin one registers "testAlpha" twice' })
})

t.test('a slot is a map of the started fillers, and a filler sees its own implementation only', async t => {
  const services = container()
  const slot: SlotName = 'testSlot'
  const fillers = ['first', 'second', 'failed'].map((name, n) => {
    const own = manifest({ id: name, fills: { slot, name } })
    const deps: AllDeps = cradleFor(services, own, always)
    registrarFor(services, own, deps).fill('testSlot', () => ({ n }))
    return deps
  })
  registerSlot(services, slot, () => ['first', 'second'])
  t.strictSame([...fillers[1]?.testSlot ?? []], [['second', { n: 1 }]])
  const required: ServiceKey | SlotName = 'testSlot'
  const { testSlot } = cradleFor(services, manifest({ requires: [required] }), always)
  t.strictSame([...testSlot], [['first', { n: 0 }], ['second', { n: 1 }]])
})
