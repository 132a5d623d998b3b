import type { Knex } from 'knex'
import t from 'tap'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { dialectOf } from '../../../core/db/open.ts'
import { manifest } from '../../../plugins/images/manifest.ts'
import { ImagesRepository } from '../../../plugins/images/repository.ts'
import { eventually } from '../../helpers/eventually.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'

const A = `sha256:${'a'.repeat(64)}`
const B = `sha256:${'b'.repeat(64)}`
const content = (digest: string): { digest: string, repository: string, platform: string, layerBytes: number, recompress: boolean } =>
  ({ digest, repository: 'h/r', platform: 'linux/amd64', layerBytes: 2 ** 40, recompress: true })
const stored = (digest: string): { digest: string, platform: string, sizeBytes: number, run: { cmd: string[], env: Record<string, string>, stopSignal: number } } =>
  ({ digest, platform: 'linux/amd64', sizeBytes: 2 ** 41, run: { cmd: ['ü', '😀'], env: { A: 'x'.repeat(100_000) }, stopSignal: 15 } })
const tag = (name: string, tags?: Record<string, string>): { name: string, repository: string, tags: Record<string, string> | undefined } => ({ name, repository: 'h/r', tags })

eachDatabase(t, 'names point at contents, which live as long as something needs them', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new ImagesRepository(database, 'host-1', () => 1_800_000_000_123)
  const other = new ImagesRepository(database, 'host-2')

  t.equal(await repository.beginAttempt(tag('h/r:1', { a: 'b' })), true)
  t.equal(await repository.beginAttempt(tag('h/r:1')), false)
  t.match(await repository.tag('h/r:1'), { state: 'resolving', tags: { a: 'b' }, createdAt: new Date(1_800_000_000_123), digest: undefined }, 'tags stay when none are given')
  t.equal(await repository.tag('h/r:2'), undefined)
  t.equal(await other.tag('h/r:1'), undefined, 'another host has its own')
  await repository.endAttempt('h/r:1', 'failed', 'no')
  t.match(await repository.tag('h/r:1'), { state: 'failed', error: 'no' })

  t.same(await repository.point('h/r:1', A, 'when-ready'), [])
  t.equal(await repository.point('h/r:9', A, 'when-ready'), undefined)
  await repository.wantContent(content(A))
  t.equal(await repository.hold(A, 'i'), false, 'what is not ready cannot be held')
  t.equal(await repository.giveUpContent(A), false)
  await repository.setStatus(A, 'failed', 'why')
  t.match(await repository.content(A), { status: 'failed', error: 'why', layerBytes: 2 ** 40, recompress: true })
  await repository.wantContent(content(A))
  t.match(await repository.content(A), { status: 'pending', error: undefined })
  t.same(await repository.finish(stored(A)), [])
  t.match(await repository.content(A), { status: 'ready', sizeBytes: 2 ** 41, run: stored(A).run })
  t.match(await repository.tag('h/r:1'), { digest: A, nextDigest: undefined })

  await repository.point('h/r:1', B, 'when-ready')
  await repository.wantContent(content(B))
  t.match(await repository.tag('h/r:1'), { digest: A, nextDigest: B })
  t.match(await repository.sibling('h/r', B), { name: 'h/r:1' })
  t.equal(await repository.sibling('h/other', B), undefined)
  t.same(await repository.names(A), ['h/r:1'])
  t.same(await repository.finish(stored(B)), [A], 'the digest that the name had before')
  t.equal(await repository.finish(stored(`sha256:${'c'.repeat(64)}`)), undefined, 'nobody wants it')

  t.equal(await repository.hold(A, 'i'), true)
  t.equal(await repository.hold(A, 'i'), true)
  t.equal(await repository.giveUpContent(A), false)
  await repository.release(A, 'i')
  t.equal(await repository.giveUpContent(A), true)
  t.equal(await repository.hold(A, 'i'), false, 'what is given up cannot be held')
  t.equal(await repository.giveUpContent(A), true, 'also after a crash')
  await repository.removeContent(A)
  t.equal(await repository.giveUpContent(A), false)
  t.same((await repository.contents()).map((row) => row.digest), [B])

  t.same(await repository.assign(tag('h/r:2'), B), [])
  t.equal(await repository.assign(tag('h/r:3'), A), undefined)
  await repository.addAlias('web:80/r:1', 'h/r:1')
  await repository.addAlias('web:80/r:1', 'h/r:1')
  t.match(await repository.aliased('web:80/r:1'), { name: 'h/r:1' })
  t.same(await repository.removeTag('h/r:1'), [B])
  t.equal(await repository.removeTag('h/r:1'), undefined)
  t.equal(await repository.aliased('web:80/r:1'), undefined)
})

eachDatabase(t, 'of two at the same time, of whom one gives a content up and the other holds or names it, the later one is refused', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const giveUp = async (repository: ImagesRepository, digest: string): Promise<boolean> => await repository.giveUpContent(digest)
  const hold = async (repository: ImagesRepository, digest: string): Promise<boolean> => await repository.hold(digest, 'i')
  const name = async (repository: ImagesRepository, digest: string): Promise<boolean> => await repository.assign(tag(`h/r:${digest.slice(-1)}`), digest) !== undefined
  const repository = new ImagesRepository(database, 'host-1')
  for (const [index, [first, second]] of ([[hold, giveUp], [giveUp, hold], [name, giveUp], [giveUp, name]] as const).entries()) {
    const digest = `sha256:${String(index).repeat(64)}`
    await repository.wantContent(content(digest))
    await repository.finish(stored(digest))
    let later: Promise<boolean> | undefined
    await database.transaction(async (trx) => {
      t.equal(await first(new ImagesRepository(trx, 'host-1'), digest), true)
      later = second(repository, digest)
      await waitsOrEnds(database, later)
    })
    t.equal(await later, false, `${second.name} after ${first.name}`)
  }
})

/** Resolves when the work has ended, or waits for the lock of another transaction. On SQLite it waits for the one connection. */
async function waitsOrEnds (database: Knex, work: Promise<unknown>): Promise<void> {
  if (dialectOf(database) === 'sqlite') return
  let isOver = false
  work.then(() => { isOver = true }, () => { isOver = true })
  await eventually('it waits or has ended', async () => isOver || (await database('information_schema.innodb_trx').where({ trx_state: 'LOCK WAIT' })).length > 0)
}

eachDatabase(t, 'names that differ only in case are two', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new ImagesRepository(database, 'host-1')
  await repository.beginAttempt(tag('h/r:Tag'))
  await repository.beginAttempt(tag('h/r:tag'))
  await repository.beginAttempt(tag(`h/${'x'.repeat(250)}:${'t'.repeat(128)}`))
  t.equal((await repository.tags()).length, 3)
  await repository.removeTag('h/r:Tag')
  t.same((await repository.tags()).map((row) => row.name).filter((name) => name.length < 20), ['h/r:tag'])
})

eachDatabase(t, 'layers come and go with their content, and are shared by what is ready on the same host', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new ImagesRepository(database, 'host-1')
  const other = new ImagesRepository(database, 'host-2')
  const layer = (place: number): { digest: string, mediaType: string | undefined, sizeBytes: number } => ({ digest: `sha256:${place}`, mediaType: place === 0 ? undefined : 'tar', sizeBytes: 2 ** 40 + place })
  const layers = { count: 300, kept: Array.from({ length: 120 }, (_, place) => layer(place)) }
  await repository.wantContent({ ...content(A), layers })
  await repository.wantContent({ ...content(A), layers })
  await repository.finish({ ...stored(A), createdBy: ['', '😀 <b>'] })
  for (const each of [repository, other]) await each.wantContent({ ...content(B), layers: { count: 1, kept: [layer(1)] } })
  await other.finish(stored(B))
  t.match(await repository.content(A), { layerCount: 300 })
  const alone = await repository.layers(A)
  t.equal(alone.length, 120)
  t.same(alone.slice(0, 2), [{ ...layer(0), createdBy: undefined, sharedBy: 0 }, { ...layer(1), createdBy: '😀 <b>', sharedBy: 0 }], 'neither another host nor a pull under way shares it')
  await repository.finish(stored(B))
  t.match((await repository.layers(A))[1], { sharedBy: 1 })
  t.equal(await repository.giveUpContent(B), true)
  await repository.removeContent(B)
  t.match((await repository.layers(A))[1], { sharedBy: 0 })
  t.same(await repository.layers(B), [])
  await repository.wantContent(content(A))
  t.match([await repository.content(A), await repository.layers(A)], [{ layerCount: undefined }, []])
  await repository.addLayers(A, { count: 1, kept: [layer(7)] })
  t.match([await repository.content(A), await repository.layers(A)], [{ layerCount: 1 }, [{ digest: 'sha256:7' }]])
})
