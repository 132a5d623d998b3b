// A server that is killed while it makes a fork to be kept ready, or an instance of one: nothing of either is left, and what comes next works.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { chosen, crashPoints } from './crash-points.ts'
import { copyOfData, crashAt, until, type Occurrence } from './crash.ts'
import { asked } from './egress-app.ts'
import { ScriptedHost, type ImagingStep } from './scripted.ts'
import { asleep, copied, startWithSpareForks, wayOf, type Original, type SpareForksApp } from './spare-forks-app.ts'

async function original (t: Test, config: Record<string, unknown> = {}): Promise<Original> {
  const host = new ScriptedHost()
  host.mediate()
  return await copied(t, { host, fields: asked, config })
}

/** The names of all instances; nobody else has a row or a folder. */
async function names (t: Test, app: SpareForksApp): Promise<string[]> {
  const listed: { name: string }[] = JSON.parse((await app.call('GET', '/instances')).text)
  const { rows, folders } = await app.remains()
  t.equal(rows.length, listed.length)
  t.same(folders, rows)
  return listed.map(({ name }) => name).sort()
}

async function isForkedAsEver (t: Test, { copy }: Original, { copies, files, host }: SpareForksApp): Promise<void> {
  const before = asleep(host.vms).length
  t.match(await copies.fork(copy, files('one'), { name: 'next' }), { name: 'next', state: 'Running' })
  await until(() => asleep(host.vms).length > before)
}

// The first of these is the fork itself.
const makings: readonly Occurrence[] = [
  ...(['allocate', 'allocated', 'plug', 'plugged', 'restore', 'loaded', 'restored'] as const).map((step) => ({ step, nth: 2 })),
  ...(['suspend', 'suspended', 'rehearse', 'rehearsed', 'pause', 'paused'] as const).map((step) => ({ step, nth: 1 }))
]
for (const at of makings) {
  t.test(`a server that is killed at "${at.step}" of making a fork to be kept ready leaves nothing of it`, async (t) => {
    const before = await original(t)
    const after = await crashAt(t, before, at, async () => await before.fork('cold'), startWithSpareForks)
    t.same(await names(t, after), ['cold', 'web'])
    t.equal(after.host.held.size, 2)
    t.equal(after.host.network?.addresses.size, 2)
    await isForkedAsEver(t, before, after)
  })
}

const claims: readonly ImagingStep[] = ['setEgress', 'egressSet', 'enforce', 'enforced', 'resumePort', 'portResumed', 'resume']
for (const step of claims) {
  t.test(`a server that is killed at "${step}" of making an instance of a fork that was kept ready leaves neither`, async (t) => {
    const before = await original(t)
    await before.fork('cold')
    await before.spares(1)
    const after = await crashAt(t, before, step, async () => { await before.fork('warm').catch(() => {}) }, startWithSpareForks)
    t.same(await names(t, after), ['cold', 'web'])
    t.equal(after.host.held.size, 2)
    t.equal(after.host.network?.addresses.size, 2)
    t.same([...after.host.egress?.policies.keys() ?? []].length, 2)
    await isForkedAsEver(t, before, after)
  })
}

t.test('a fork that was kept ready and whose server is killed once it is stored is woken by the next one, under its own name', async (t) => {
  const before = await original(t)
  await before.fork('cold')
  const [ready] = await before.spares(1)
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  before.host.onStep = async (step) => {
    if (step !== 'wake') return
    before.host.onStep = undefined
    await held
    throw new Error('the server was killed here')
  }
  const cut = before.fork('warm').catch(() => {})
  await until(async () => (await before.call('GET', '/instances/warm')).status === 200)
  const after = await startWithSpareForks(t, { host: before.host, dataDir: await copyOfData(t, before.dataDir) })
  t.match((await after.waitFor('warm', 'Running')).body, { state: 'Running' })
  t.match(ready?.wakes.at(-1), { hostname: 'warm', newMachine: true })
  t.same(await names(t, after), ['cold', 'warm', 'web'])
  go()
  await cut
})

t.test('a server that is killed with a fork at hand starts without it', async (t) => {
  const before = await original(t)
  await before.fork('cold')
  await before.spares(1)
  const after = await startWithSpareForks(t, { host: before.host, dataDir: await copyOfData(t, before.dataDir) })
  t.same(await names(t, after), ['cold', 'web'])
  const view = await after.copies.fork(before.copy, after.files('one'), { name: 'next' })
  t.equal(await wayOf(after, String(Object(view).id)), 'copy')
})

t.test('a server that died at any step of its work on the files of a fork to be kept ready leaves nothing of it', async (t) => {
  // Nothing is made yet when the fork has been answered.
  const before = await original(t, { templates: { quiet: '2s' } })
  await before.call('POST', '/instances/web/standby')
  await before.fork('cold')
  const points = await crashPoints(t, before.dataDir, async () => { await before.spares(1) })
  t.ok(points.length > 8, `${points.length} steps`)
  for (const { step, dataDir } of chosen(points)) {
    await t.test(`at ${step}`, async (t) => {
      const host = new ScriptedHost()
      host.mediate()
      const after = await startWithSpareForks(t, { host, dataDir })
      t.same(await names(t, after), ['cold', 'web'])
      t.same((await readdir(join(dataDir, 'copies'))).sort(), ['one.memory', 'one.overlay', 'one.state'])
      await after.app.stop()
    })
  }
})
