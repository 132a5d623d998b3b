// The server dies between any two steps of what it does with an instance that shares a memory file; the next one finds the data folder, and the VM, as they were at that moment.
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { StartOptions } from './app.ts'
import { crashAt, until } from './crash.ts'
import { chosen, crashPoints } from './crash-points.ts'
import type { ImagingStep } from './scripted.ts'
import { clonesIn, sharingHost, type SharingApp } from './sharing-app.ts'
import { startWithTemplates, type TemplateApp } from './templates-app.ts'

const withoutSpares = async (t: Test, options: StartOptions): Promise<TemplateApp> => await startWithTemplates(t, { ...options, config: { templates: { spares: 0 } } })
const folderIn = ({ dataDir }: TemplateApp, id: string): string => join(dataDir, 'instances', id)
const IMAGE = /^(memory|base|standby|restore|replacement)/
const partsIn = async (folder: string): Promise<string[]> => (await readdir(folder)).filter((name) => IMAGE.test(name)).sort()

const standbys: readonly [ImagingStep, string][] = [
  ['sleep', 'Running'], ['slept', 'Running'], ['capture', 'Running'], ['captured', 'Running'], ['kill', 'Standby'], ['killed', 'Standby']
]
for (const [step, state] of standbys) {
  t.test(`a standby on a base that was cut off at "${step}" is ${state === 'Running' ? 'undone' : 'finished'}`, async (t) => {
    const before = await clonesIn(t)
    const after = await crashAt(t, before, step, async () => await before.call('POST', '/instances/clone/standby'), withoutSpares)
    const folder = folderIn(after, before.id)
    t.match((await after.waitFor('clone', state)).body, { state })
    if (state === 'Running') {
      await until(async () => (await partsIn(folder)).join() === 'base')
      t.match(await after.call('POST', '/instances/clone/standby'), { status: 200, body: { state: 'Standby' } })
    }
    t.same(await partsIn(folder), ['base', 'standby'])
    t.match(await after.call('POST', '/instances/clone/restore'), { status: 200, body: { state: 'Running' } })
    t.match(after.host.vm.spec.memory, { sharing: 'private', changes: /changes$/ })
    t.match(await after.call('POST', '/instances/clone/stop'), { status: 200, body: { state: 'Stopped' } })
    t.same(await partsIn(folder), [])
  })
}

/** In standby. */
async function asleep (t: Test): Promise<SharingApp> {
  const app = await clonesIn(t)
  await app.call('POST', '/instances/clone/standby')
  return app
}

const restores: readonly [ImagingStep, string][] = [['restore', 'Standby'], ['loaded', 'Running'], ['restored', 'Running'], ['wake', 'Running']]
for (const [step, state] of restores) {
  t.test(`a restore on a base that was cut off at "${step}" leaves it ${state}, and nothing of the memory is lost`, async (t) => {
    const before = await asleep(t)
    const after = await crashAt(t, before, step, async () => await before.call('POST', '/instances/clone/restore'), withoutSpares)
    t.match((await after.waitFor('clone', state)).body, { state })
    if (state === 'Standby') t.match(await after.call('POST', '/instances/clone/restore'), { status: 200, body: { state: 'Running' } })
    await until(async () => (await partsIn(folderIn(after, before.id))).join() === 'base')
    t.match(await after.call('POST', '/instances/clone/standby'), { status: 200, body: { state: 'Standby' } })
  })
}

t.test('a restore on a base that was cut off after its VM ran, which has ended since, leaves the instance in standby as before', async (t) => {
  const { app, host, dataDir, id } = await asleep(t)
  await app.stop()
  // No VM has gone on from an image of this kind since its start, so that it keeps a copy.
  const before = await withoutSpares(t, { host, dataDir })
  const after = await crashAt(t, before, 'restored', async () => await before.call('POST', '/instances/clone/restore'), async (t, options) => {
    before.host.vm.set({ status: 'gone' })
    return await withoutSpares(t, options)
  })
  t.match((await after.call('GET', '/instances/clone')).body, { state: 'Standby', has_snapshot: true, state_error: null, restore_error: /the server ended while/ })
  t.same(await partsIn(folderIn(after, id)), ['base', 'standby'])
  t.match(await after.call('POST', '/instances/clone/restore'), { status: 200, body: { state: 'Running' } })
  t.notMatch(after.host.vm.restoredFrom?.memory, /gone on, gone on/)
})

t.test('an instance whose server died at any step of the work on files of its standby is as it was or whole', async (t) => {
  const before = await clonesIn(t)
  const points = await crashPoints(t, before.dataDir, async () => { await before.call('POST', '/instances/clone/standby') })
  t.ok(points.length > 4, `${points.length} steps`)
  for (const { step, dataDir } of chosen(points)) {
    await t.test(`at ${step}`, async (t) => {
      // The VM has ended with the server.
      const after = await withoutSpares(t, { host: sharingHost(), dataDir })
      const { state } = (await after.call('GET', '/instances/clone')).body
      t.ok(state === 'Standby' || state === 'Stopped')
      t.same(await partsIn(folderIn(after, before.id)), state === 'Standby' ? ['base', 'standby'] : [])
      t.match(await after.call('POST', `/instances/clone/${state === 'Standby' ? 'restore' : 'start'}`), { status: 200 })
      await after.app.stop()
    })
  }
})

for (const kind of ['Running', 'Standby'] as const) {
  t.test(`a fork that shares the base of its ${kind} source, and whose server died at any step of its work on files, is gone or whole, and the source stays`, async (t) => {
    const before = kind === 'Running' ? await clonesIn(t) : await asleep(t)
    const points = await crashPoints(t, before.dataDir, async () => { await before.call('POST', '/instances/clone/fork', { name: 'fork', from_running: true, target_state: 'Standby' }) })
    t.ok(points.length > 8, `${points.length} steps`)
    for (const { step, dataDir } of chosen(points)) {
      await t.test(`at ${step}`, async (t) => {
        const after = await withoutSpares(t, { host: sharingHost(), dataDir })
        const fork = await after.call('GET', '/instances/fork')
        if (fork.status === 200) t.match(fork.body, { state: 'Standby' })
        t.equal((await readdir(join(dataDir, 'instances'))).length, fork.status === 200 ? 2 : 1)
        if (kind === 'Standby') t.match(await after.call('POST', '/instances/clone/restore'), { status: 200, body: { state: 'Running' } })
        if (fork.status === 200) t.match(await after.call('POST', '/instances/fork/restore'), { status: 200, body: { state: 'Running' } })
        await after.app.stop()
      })
    }
  })
}

t.test('a server that dies at any step of the work on files of a create from a shared template leaves nothing of it', async (t) => {
  const before = await clonesIn(t)
  const points = await crashPoints(t, before.dataDir, async () => { await before.make('second') })
  for (const { step, dataDir } of chosen(points)) {
    await t.test(`at ${step}`, async (t) => {
      const after = await withoutSpares(t, { host: sharingHost(), dataDir })
      const second = await after.call('GET', '/instances/second')
      t.equal((await readdir(join(dataDir, 'instances'))).length, second.status === 200 ? 2 : 1)
      // Their VMs have ended with the server, and a VM that is gone holds no base.
      for (const id of await readdir(join(dataDir, 'instances'))) t.notOk(existsSync(join(dataDir, 'instances', id, 'base')))
      t.equal(await after.wayOf(await after.make('third')), 'from a template')
      await after.app.stop()
    })
  }
})
