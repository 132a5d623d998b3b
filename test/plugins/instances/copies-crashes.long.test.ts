// The server dies between any two steps of taking a copy, of making an instance of one, and of putting an instance back to one: the next server finds
// the data folder as it was at that moment.
import { appendFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { InstanceCopy } from '../../../plugins/instances/contract.ts'
import { openDatabase } from './database.ts'
import { diskMark, sourceIn, startWithCopies, type CopiesApp, type Source } from './copies-app.ts'
import { crashAt, until } from './crash.ts'
import { chosen, crashPoints } from './crash-points.ts'
import { ScriptedHost, type ImagingStep } from './scripted.ts'

const FIRST = 'memory of pid 4000000'
/** It has gone on after the copy was taken, and after the restore. */
const SECOND = `${FIRST}, gone on, gone on`

function disk (app: CopiesApp, id: unknown): string {
  return join(app.folder(id), 'overlay.ext4')
}

async function names (app: CopiesApp): Promise<unknown[]> {
  const database = await openDatabase(app.dataDir)
  try {
    return (await database('instances_instances').select('name').orderBy('name')).map(({ name }) => String(name))
  } finally {
    await database.destroy()
  }
}

const captures: readonly ImagingStep[] = ['flush', 'flushed', 'track', 'tracked', 'sleep', 'slept', 'changes', 'untrack', 'capture', 'captured', 'resume', 'wake', 'woken']
for (const step of captures) {
  t.test(`an instance whose capture was cut off at "${step}" goes on`, async (t) => {
    const before = await sourceIn(t, 'Running')
    const { vm } = before.host
    const after = await crashAt(t, before, step, async () => { await before.copies.capture('web', 'Standby', before.files('one')).catch(() => {}) }, startWithCopies)
    t.match((await after.waitFor('web', 'Running')).body, { state: 'Running' })
    await until(async () => vm.phase === 'running' && vm.state.status === 'running')
    await until(async () => !(await readdir(after.folder(before.id))).some((name) => name.startsWith('standby')))
    t.match(await after.copies.capture('web', 'Standby', after.files('two')), { kind: 'Standby' })
    t.match(await after.call('POST', '/instances/web/standby'), { status: 200, body: { state: 'Standby' } })
  })
}

const forks: readonly ImagingStep[] = ['restore', 'restored']
for (const step of forks) {
  t.test(`a fork of a copy that was cut off at "${step}" is gone`, async (t) => {
    const before = await sourceIn(t, 'Running')
    const copy = await before.copies.capture('web', 'Standby', before.files('one'))
    const after = await crashAt(t, before, step, async () => { await before.copies.fork(copy, before.files('one'), { name: 'copy' }).catch(() => {}) }, startWithCopies)
    t.same(await readdir(join(after.dataDir, 'instances')), [before.id])
    t.same(await names(after), ['web'])
    t.equal(after.host.held.size, 1)
    t.match(await after.copies.fork(copy, after.files('one'), { name: 'copy' }), { state: 'Running' })
  })
}

t.test('a fork of a copy whose server died at any step of its work on files is gone, and the copy and its source stay', async (t) => {
  const before = await sourceIn(t, 'Running')
  const { copies, files } = before
  const copy = await copies.capture('web', 'Standby', files('one'))
  await before.call('POST', '/instances/web/standby')
  const points = await crashPoints(t, before.dataDir, async () => { await copies.fork(copy, files('one'), { name: 'copy', targetState: 'Standby' }) })
  t.ok(points.length > 8, `${points.length} steps`)
  for (const { step, dataDir } of chosen(points)) {
    await t.test(`at ${step}`, async (t) => {
      const after = await startWithCopies(t, { host: new ScriptedHost(), dataDir })
      const fork = await after.call('GET', '/instances/copy')
      // Once it is there, it is whole.
      if (fork.status === 200) t.match(fork.body, { state: 'Standby' })
      t.equal((await readdir(join(dataDir, 'instances'))).length, fork.status === 200 ? 2 : 1)
      t.match((await after.call('GET', '/instances/web')).body, { state: 'Standby' })
      if (fork.status !== 200) await after.copies.fork(copy, after.files('one'), { name: 'copy' })
      else await after.call('POST', '/instances/copy/restore')
      t.match(after.host.vm, { restoredFrom: { memory: FIRST }, wakes: [{ hostname: 'copy', newMachine: true }] })
      await after.app.stop()
    })
  }
})

/** An instance in `state` that has gone on since a copy was taken of it. */
async function goneOn (t: Test, kind: 'Standby' | 'Stopped', state: 'Standby' | 'Stopped'): Promise<Source & { copy: InstanceCopy }> {
  const app = await sourceIn(t, 'Running')
  if (kind === 'Stopped') await app.call('POST', '/instances/web/stop')
  const copy = await app.copies.capture('web', kind, app.files('one'))
  if (kind === 'Standby') {
    await app.call('POST', '/instances/web/standby')
    await app.call('POST', '/instances/web/restore')
  } else {
    await app.call('POST', '/instances/web/start', { cmd: ['later'] })
  }
  await app.waitFor('web', 'Running')
  await appendFile(join(app.folder(app.id), 'overlay.ext4'), ', second')
  await app.call('POST', `/instances/web/${state === 'Standby' ? 'standby' : 'stop'}`)
  return { ...app, copy }
}

const table = [
  { kind: 'Standby', before: 'Standby', target: 'Standby', memory: SECOND },
  { kind: 'Standby', before: 'Stopped', target: 'Standby', memory: undefined },
  { kind: 'Standby', before: 'Standby', target: 'Stopped', memory: SECOND },
  { kind: 'Stopped', before: 'Standby', target: 'Stopped', memory: 'memory of pid 4000001' }
] as const

for (const { kind, before, target, memory } of table) {
  t.test(`an instance in ${before} whose server died at any step of putting it back to a copy of kind ${kind} in ${target} is as it was or as it was to be`, async (t) => {
    const app = await goneOn(t, kind, before)
    const points = await crashPoints(t, app.dataDir, async () => { await app.copies.restore('web', app.copy, app.files('one'), { targetState: target }) })
    t.ok(points.length > 10, `${points.length} steps`)
    let isDone = false
    for (const { step, dataDir } of chosen(points)) {
      await t.test(`at ${step}`, async (t) => {
        const after = await startWithCopies(t, { host: new ScriptedHost(), dataDir })
        const mark = await diskMark(disk(after, app.id))
        if (isDone) t.equal(mark, 'first', 'what is done stays done')
        isDone = mark === 'first'
        const state = isDone ? target : before
        const expected = isDone ? FIRST : memory
        t.equal(mark, isDone ? 'first' : 'first, second')
        t.match((await after.call('GET', '/instances/web')).body, { state, has_snapshot: state === 'Standby' })
        t.same((await readdir(after.folder(app.id))).filter((name) => !/\.log$|^report$|^overlay\.ext4$/.test(name)).sort(), state === 'Standby' ? ['memory', 'standby'] : [])
        t.match(await after.call('POST', `/instances/web/${state === 'Standby' ? 'restore' : 'start'}`), { status: 200 })
        if (state === 'Standby') t.equal(after.host.vm.restoredFrom?.memory, expected)
        else if (kind === 'Stopped') t.same(after.host.vm.spec.disks[1]?.path, join(after.folder(app.id), 'overlay.ext4'))
        await after.app.stop()
      })
    }
    t.ok(isDone, 'the last steps come after the decision')
  })
}

const wakings: readonly [ImagingStep, 'Standby' | 'Running'][] = [['restore', 'Standby'], ['loaded', 'Running'], ['restored', 'Running'], ['wake', 'Running']]
for (const [step, state] of wakings) {
  t.test(`an instance that was put back and whose server died at "${step}" is ${state}`, async (t) => {
    const before = await goneOn(t, 'Standby', 'Standby')
    const after = await crashAt(t, before, step, async () => { await before.copies.restore('web', before.copy, before.files('one'), {}).catch(() => {}) }, startWithCopies)
    t.match((await after.waitFor('web', state)).body, { state })
    t.equal(await diskMark(disk(after, before.id)), 'first')
    if (state !== 'Running') t.match(await after.copies.restore('web', before.copy, after.files('one'), {}), { state: 'Running' })
    t.equal(after.host.vm.restoredFrom?.memory, FIRST)
    await until(async () => (await readdir(after.folder(before.id))).every((name) => !/^(standby|replacement)/.test(name)))
  })
}
