// Templates whose guests have given their disks the driver already, with a VMM that tells guests of the size of other disks.
import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startWithTemplates, type TemplateApp } from './templates-app.ts'
import { until } from './crash.ts'

type Options = Parameters<typeof startWithTemplates>[1]

async function startAnnouncing (t: Parameters<typeof startWithTemplates>[0], options: Options = {}): Promise<TemplateApp> {
  const app = await startWithTemplates(t, options)
  Object.assign(app.host.driver.imaging ?? {}, { announcesDisks: true })
  return app
}

t.test('the guest of a template has its driver on disks that are larger than any, and its clones are told of theirs', async (t) => {
  const app = await startAnnouncing(t, { config: { templates: { spares: 0 } } })
  const sizes: Record<string, number> = {}
  let remaining: unknown[] = []
  app.host.onStep = async (step, vm) => {
    const paths = [...vm?.disks ?? []]
    const isPlaceholder = paths.some(([, path]) => path.endsWith('placeholder.erofs'))
    if (step === 'launched' && isPlaceholder) for (const [id, path] of paths) sizes[id] = (await stat(path)).size
    if (step === 'bind') remaining = paths.filter(([, path]) => existsSync(path))
  }
  await app.make('first')
  await until(async () => await app.count('templates') === 1)
  t.strictSame(sizes, { root: 2 ** 43, overlay: 2 ** 43 })
  t.strictSame(remaining, [], 'no backup reads their holes')
  const id = await app.make('second')
  t.equal(await app.wayOf(id), 'from a template')
  const clone = app.host.vms.find(({ spec }) => spec.id === id)
  t.strictSame(clone?.otherDisks, ['root', 'overlay'])
  t.equal((await stat(join(app.dataDir, 'instances', id, 'overlay.ext4'))).size, 32 * 2 ** 20)
  t.notOk(clone?.isBound, 'it need not do it again')
})

t.test('a guest whose VMM does not tell it leaves its disks alone', async (t) => {
  const app = await startWithTemplates(t)
  await app.warmUp()
  t.notOk(app.host.vms.some(({ isBound }) => isBound))
})

t.test('no disk of a spare VM becomes another one while its guest runs', async (t) => {
  const app = await startAnnouncing(t)
  const states: string[] = []
  app.host.onStep = (step, vm) => { if (step === 'replace') states.push(vm?.state.status ?? '') }
  await app.warmUp()
  t.equal(await app.wayOf(await app.make('second', { overlay_size: '48MB' })), 'from a spare VM')
  t.ok(states.length >= 3)
  t.strictSame([...new Set(states)], ['paused'])
})

t.test('no template is made by a guest that cannot give its disks their driver', async (t) => {
  const app = await startAnnouncing(t)
  app.host.failures.set('bind', Object.assign(new Error('this guest cannot'), { code: 'guest_refused' }))
  await app.make('first')
  await until(() => app.lines.some(({ msg }) => String(msg).includes('could not be made')))
  t.equal(await app.count('templates'), 0)
  t.equal(await app.wayOf(await app.make('second')), 'by a boot')
})
