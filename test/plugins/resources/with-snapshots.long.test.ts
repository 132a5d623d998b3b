// Room for an instance that is put back to a snapshot and is to run then, on a scripted host.
import { rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../../plugins/snapshots/clock.ts'
import { snapshotsPlugin } from '../../../plugins/snapshots/index.ts'
import { create, running, startResources, taken, TEN } from './app.ts'

for (const kind of ['Stopped', 'Standby'] as const) {
  t.test(`a restore of a ${kind} snapshot in place asks for room before it replaces anything, and gives it back when nothing could be replaced`, async (t) => {
    const app = await startResources(t, { ...TEN, capacity: { ...TEN.capacity, cpu: 1 } }, { plugins: [snapshotsPlugin(systemClock)] })
    const { call, dataDir } = app
    await create(app, 'web')
    await app.waitFor('web', 'Running')
    const id = String((await call('GET', '/instances/web')).body['id'])
    if (kind === 'Stopped') await call('POST', '/instances/web/stop')
    const snapshot = String((await call('POST', '/instances/web/snapshots', { kind })).body['id'])
    if (kind === 'Standby') await call('POST', '/instances/web/stop')
    const disk = join(dataDir, 'instances', id, 'overlay.ext4')
    const before = await stat(disk)
    await create(app, 'other')
    const back = async (): Promise<unknown> => await call('POST', `/instances/web/snapshots/${snapshot}/restore`, { target_state: 'Running' })
    t.match(await back(), { status: 409, body: { code: 'insufficient_resources', message: /^this host has no room for that: cpu: / } })
    t.match((await call('GET', '/instances/web')).body, { state: 'Stopped' })
    t.equal((await stat(disk)).ino, before.ino, 'its disk is the one that it had')
    t.same(await taken(app), running(1, 2))
    await call('POST', '/instances/other/stop')
    const place = join(dataDir, 'snapshots', snapshot)
    await rename(place, `${place}-away`)
    t.match(await back(), { status: 500 })
    t.equal((await stat(disk)).ino, before.ino)
    t.same(await taken(app), running(0, 2), 'what it had asked for')
    await rename(`${place}-away`, place)
    t.match(await back(), { status: 200 })
    await app.waitFor('web', 'Running')
    t.not((await stat(disk)).ino, before.ino)
    t.same(await taken(app), running(1, 2))
  })
}
