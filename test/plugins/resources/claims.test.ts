// The claims that are kept in memory are those that are stored.
import t from 'tap'
import type { Knex } from 'knex'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { Claims } from '../../../plugins/resources/claims.ts'
import { InsufficientResources } from '../../../plugins/resources/errors.ts'
import { ClaimRepository, totalOf } from '../../../plugins/resources/repository.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'
import { claimOf } from './claims.ts'

const anything = (): void => {}

async function prepare (database: Knex): Promise<void> {
  await migratePlugin(database, 'resources', new URL('../../../plugins/resources/migrations/', import.meta.url))
  await new ClaimRepository(database, 'host').open()
}

/** A repository whose next call is changed. */
class Faulty extends ClaimRepository {
  losesAnswer = false
  beforeAnswer = async (): Promise<void> => {}

  override async claim (...given: Parameters<ClaimRepository['claim']>): Promise<void> {
    await super.claim(...given)
    if (this.losesAnswer) throw new Error('the connection is gone')
  }

  override async all (): ReturnType<ClaimRepository['all']> {
    const found = await super.all()
    await this.beforeAnswer()
    return found
  }
}

eachDatabase(t, 'what is kept is what is stored, after each change', async (t, database) => {
  await prepare(database)
  const repository = new ClaimRepository(database, 'host')
  const claims = new Claims(repository)
  const changes = [
    async () => { for (const id of ['b', 'c', 'a']) await claims.claim(claimOf(id), anything) },
    async () => { await claims.claim(claimOf('a', { kind: 'volume', active: false }), anything) },
    async () => { await claims.claim(claimOf('b', { vcpus: 8, name: 'other' }), anything) },
    async () => { await claims.rest('b') },
    async () => { await claims.rest('unknown') },
    async () => { await claims.shrink('b', 3) },
    async () => { await claims.shrink('unknown', 3) },
    async () => { await claims.release('instance', 'a') },
    async () => { await claims.replaceAll('instance', [claimOf('d'), claimOf('c', { active: false })]) },
    async () => { await t.rejects(claims.claim(claimOf('e'), () => { throw InsufficientResources(['cpu: 1 vCPU wanted']) }), { code: 'insufficient_resources' }) },
    async () => { await claims.release('volume', 'a') },
    async () => { await claims.replaceAll('volume', [claimOf('v', { kind: 'volume' })]) },
    async () => { await claims.release('instance', 'unknown') }
  ]
  for (const change of changes) {
    await change()
    const [{ instances, totals }, stored] = await Promise.all([claims.known(), repository.all()])
    t.same(instances, stored.filter(({ kind }) => kind === 'instance'))
    t.same(totals, totalOf(stored))
  }
})

eachDatabase(t, 'a change whose answer was lost is looked up', async (t, database) => {
  await prepare(database)
  const repository = new Faulty(database, 'host')
  const claims = new Claims(repository)
  t.same((await claims.known()).instances, [])
  repository.losesAnswer = true
  await t.rejects(claims.claim(claimOf('a'), anything), { message: 'the connection is gone' })
  t.match((await claims.known()).instances, [{ id: 'a' }])
})

eachDatabase(t, 'what was read before a change is not kept after it', async (t, database) => {
  await prepare(database)
  const repository = new Faulty(database, 'host')
  const claims = new Claims(repository)
  repository.beforeAnswer = async () => {
    repository.beforeAnswer = async () => {}
    await claims.claim(claimOf('a'), anything)
  }
  t.same((await claims.known()).instances, [], 'as it was when it was read')
  t.match((await claims.known()).instances, [{ id: 'a' }])
})
