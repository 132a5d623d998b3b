// The server dies between any two steps of its work on a volume: the next one has all of it, or nothing.
import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { chosen, crashPoints, withFullDisk } from '../instances/crash-points.ts'
import { tar } from '../../helpers/tar.ts'
import { EMPTY, startWithVolumes, type VolumesApp } from './app.ts'

const archive = gzipSync(tar([{ path: 'd', type: 'dir' }, { path: 'd/a', content: randomBytes(10_000) }, { path: 'd/l', type: 'symlink', target: 'a' }, { path: 'h', type: 'hardlink', target: 'd/a' }]))

const operations: Record<string, (app: VolumesApp) => Promise<{ status: number }>> = {
  'a create': async (app) => await app.call('POST', '/volumes', { name: 'new', size_gb: 1, id: 'new' }),
  'a create from an archive': async (app) => await app.upload(archive, 'name=new&size_gb=1&id=new')
}

t.setTimeout(280_000)

for (const [name, run] of Object.entries(operations)) {
  t.test(`${name} that is cut off anywhere leaves a whole volume or none`, { timeout: 140_000 }, async (t) => {
    const before = await startWithVolumes(t)
    await before.makeVolume('other', { id: 'other' })
    const points = await crashPoints(t, before.dataDir, async () => { t.equal((await run(before)).status, 201) })
    t.ok(points.length >= 2, `${points.length} points`)
    const outcomes = new Set<string>()
    for (const { step, dataDir } of chosen(points)) {
      const after = await startWithVolumes(t, { dataDir })
      const found: { id: string }[] = JSON.parse((await after.call('GET', '/volumes')).text)
      const ids = found.map(({ id }) => id)
      outcomes.add(ids.join())
      t.same(await after.files(), ['disks', ...ids.map((id) => `disks/${id}.img`), 'unpacking', 'uses'].sort(), step)
      t.ok(ids.includes('other'), step)
      t.equal((await run(after)).status, ids.includes('new') ? 409 : 201, step)
      await after.app.stop()
    }
    t.comment([...outcomes].join(' | '))
  })

  t.test(`${name} on a full disk says so and leaves nothing`, { timeout: 100_000 }, async (t) => {
    const app = await startWithVolumes(t)
    for (let n = 0; ; n++) {
      let answer = { status: 0 }
      const step = await withFullDisk(app.dataDir, n, async () => { answer = await run(app) })
      if (step === undefined) {
        t.ok(n > 0, `${n} steps`)
        break
      }
      t.match(answer, { status: 409, body: { code: 'insufficient_resources' } }, step)
      t.same(await app.files(), EMPTY, step)
    }
  })
}

t.test('a delete that is cut off is finished, or never began', { timeout: 100_000 }, async (t) => {
  const before = await startWithVolumes(t)
  await before.makeVolume('old', { id: 'old' })
  const points = await crashPoints(t, before.dataDir, async () => { t.equal((await before.call('DELETE', '/volumes/old')).status, 204) })
  for (const { step, dataDir } of chosen(points)) {
    const after = await startWithVolumes(t, { dataDir })
    const { status } = await after.call('GET', '/volumes/old')
    t.same(await after.files(), status === 200 ? ['disks', 'disks/old.img', 'unpacking', 'uses'] : EMPTY, step)
    await after.app.stop()
  }
})
