// A server that is killed while it makes a template, or an instance of one: nothing of either is left, and what comes next works.
import t from 'tap'
import { copyOfData, crashAt, until } from './crash.ts'
import type { ImagingStep } from './scripted.ts'
import { startWithTemplates } from './templates-app.ts'

const buildSteps: readonly ImagingStep[] = ['launch', 'launched', 'capture', 'captured', 'kill', 'killed', 'restore', 'restored', 'rehearse', 'rehearsed', 'pause', 'paused']
for (const step of buildSteps) {
  t.test(`a server that is killed at "${step}" of making a template leaves nothing of it`, async (t) => {
    const before = await startWithTemplates(t)
    const { host } = before
    // As long as its guest is booting, nothing is made in the background.
    host.behaviour = 'boot-only'
    const first = await before.make('first')
    const after = await crashAt(t, before, step, async () => {
      host.behaviour = 'run'
      host.vm.begin()
    }, startWithTemplates)
    t.same((await after.remains()).rows, [first])
    t.same((await after.remains()).folders, [first])
    t.same((await after.remains()).templates, [])
    const second = await after.make('second')
    t.equal(await after.wayOf(second), 'by a boot')
    await until(async () => await after.count('spares') === 1)
    t.equal(await after.wayOf(await after.make('third')), 'from a spare VM')
  })
}

for (const step of ['replace', 'replaced', 'resume'] as const) {
  t.test(`a server that is killed at "${step}" of making an instance of a spare VM leaves neither`, async (t) => {
    const before = await startWithTemplates(t)
    const first = await before.warmUp()
    const after = await crashAt(t, before, step, async () => await before.call('POST', '/instances', { name: 'second', image: 'test', overlay_size: '32MB' }), startWithTemplates)
    t.same((await after.remains()).rows, [first])
    t.same((await after.remains()).folders, [first])
    t.equal((await after.remains()).templates.length, 1)
    t.equal(after.host.held.size, 1)
    t.equal(await after.wayOf(await after.make('second')), 'from a template')
  })
}

t.test('a server that is killed while it clones a template leaves no instance', async (t) => {
  const before = await startWithTemplates(t, { config: { templates: { spares: 0 } } })
  const first = await before.make('first')
  await until(async () => await before.count('templates') === 1)
  const after = await crashAt(t, before, 'restored', async () => await before.call('POST', '/instances', { name: 'second', image: 'test', overlay_size: '32MB' }), startWithTemplates)
  t.same((await after.remains()).rows, [first])
  t.equal(after.host.held.size, 1)
  t.equal(await after.wayOf(await after.make('second')), 'from a template')
})

t.test('a server that is killed with a spare VM at hand starts without it, and keeps the template', async (t) => {
  const before = await startWithTemplates(t)
  const first = await before.warmUp()
  const after = await startWithTemplates(t, { host: before.host, dataDir: await copyOfData(t, before.dataDir) })
  t.same((await after.remains()).rows, [first])
  t.same((await after.remains()).folders, [first])
  t.equal(await after.count('templates'), 1)
  t.equal(await after.wayOf(await after.make('second')), 'from a template')
})
