// API keys: made, listed, revoked, and checked on every request without asking the database each time.
import { createId } from '@paralleldrive/cuid2'
import type { Knex } from 'knex'
import type { ApiKeyPrincipal, ApiKeys, Logger } from '../contracts/services.ts'
import { LAST_DATE } from '../date-time.ts'
import { InvalidRequest, NotFound } from '../errors/common.ts'
import { lookup, lookupStored } from '../http/lookup.ts'
import { durableProcessId, PROCESS_ID } from './durable-id.ts'
import { createKeyCache, principalOf } from './key-cache.ts'
import type { Found } from '../http/list.ts'
import { createApiKeyRepository, type ApiKeyRecord, type KeyFilter, type KeyPage } from './key-repository.ts'
import { hashKey, hashPresented, makeKey, NO_KEY } from './key-text.ts'
import { createKeyUses, type KeyUses } from './key-uses.ts'
import { countedFor } from './counted-for.ts'
import { createKeyWatch } from './key-watch.ts'
import { createProcessKeys } from './process-keys.ts'
import { checkRepositories, holdsRepository } from './repositories.ts'
import { checkScopes } from './scopes.ts'

const MAX_NAME_LENGTH = 191

export interface NewApiKey {
  readonly name: string
  readonly scopes: readonly string[]
  /** where it may write images; absent: everywhere */
  readonly repositories?: readonly string[]
  /** id of the key that makes it */
  readonly createdBy?: string
  /** ms since the epoch; absent: never */
  readonly expiresAt?: number
  /** a key that exists already, such as the one in the admin key file; a new one is made when absent */
  readonly key?: string
  readonly id?: string
}

/** The `apiKeys` service with what only core and the command line use. */
export interface ManagedApiKeys extends ApiKeys {
  /** Stores a key and returns it. It can never be read again. */
  create (options: NewApiKey): Promise<{ readonly key: string, readonly record: ApiKeyRecord }>
  /** Oldest first. */
  list (): Promise<readonly ApiKeyRecord[]>
  /** @throws invalid_request */
  page (filter: KeyFilter, page: KeyPage): Promise<Found<ApiKeyRecord>>
  /** By its id or the beginning of one. @throws not_found, ambiguous */
  get (ref: string): Promise<ApiKeyRecord>
  /** Ends a key for good, by its id or the beginning of one: here at once, in other processes within 5 seconds. @throws not_found, ambiguous */
  revoke (ref: string): Promise<ApiKeyRecord>
  /** Accepts `key` with full access as long as this process lives; for `BERTH_API_KEY`. */
  addProcessKey (key: string): void
  /** The stored record of a key, revoked or expired ones too. */
  find (key: string): Promise<ApiKeyRecord | undefined>
  /** Writes the collected uses now. */
  close (): Promise<void>
}

/** Makes the `apiKeys` service. `scopes` are those that a new key can be given; `clock` is the wall clock in ms since the epoch, for what is stored; `elapsed` counts ms that pass whatever is done to that clock, for timeouts. */
export function createApiKeys ({ database, log, scopes, clock = Date.now, elapsed = () => performance.now() }: { database: Knex, log: Logger, scopes: readonly string[], clock?: () => number, elapsed?: () => number }): ManagedApiKeys {
  const repository = createApiKeyRepository(database)
  const stored = createKeyCache(repository, { clock, elapsed })
  const own = createProcessKeys(elapsed)
  const uses = createKeyUses(repository.touch, log)
  const watch = createKeyWatch(async (ids) => await repository.ended(ids, clock()), log)
  const verifyHash: ApiKeys['verifyHash'] = (hash) => {
    if (hash === NO_KEY) return undefined
    const now = clock()
    const ephemeral = own.find(hash)
    if (ephemeral !== undefined) return ephemeral.expiresAt > elapsed() ? ephemeral.principal : undefined
    const verified = stored.verify(hash, now)
    return verified instanceof Promise
      ? verified.then((principal) => noted(uses, principal, now))
      : noted(uses, verified, now)
  }
  return {
    verify: (key) => verifyHash(hashPresented(key)),
    verifyHash,
    async current (id) {
      const inProcess = own.findById(id)
      if (inProcess !== undefined) return inProcess.expiresAt > elapsed() ? inProcess.principal : undefined
      const record = await repository.find(id)
      return record === undefined || (record.expiresAt ?? Infinity) <= clock() ? undefined : principalOf(record)
    },
    allows: (principal, scope) => principal.scopes.includes('*') || principal.scopes.includes(scope),
    mayWrite: (principal, repository) => holdsRepository(principal.repositories, repository),
    whenEnded (principal, then) {
      const releases = [...new Set([principal.id, countedFor(principal)])].map((id) => watch.add(id, () => {
        release()
        then()
      }))
      const release = (): void => { for (const each of releases) each() }
      return release
    },
    issueEphemeral (name, scopes, ttlMs, repositories, owner) {
      const id = createId()
      const key = makeKey(id)
      const forget = own.add(key, { id, name, scopes: [...scopes], ...repositories === undefined ? {} : { repositories }, ...owner === undefined ? {} : { owner: countedFor(owner) }, expiresAt: clock() + ttlMs }, elapsed() + ttlMs)
      return {
        id,
        key,
        revoke () {
          forget()
          watch.end(id)
        }
      }
    },
    addProcessKey (key) { own.add(key, { id: PROCESS_ID, durableId: durableProcessId(key), name: 'process', scopes: ['*'] }, Infinity) },
    async create (options) {
      const made = makeRecord(options, clock(), scopes)
      await repository.insert(made.record, hashKey(made.key))
      // somebody may have presented this key before, and it was refused
      stored.forget(hashKey(made.key))
      return made
    },
    list: () => repository.list(),
    page: async (filter, page) => await repository.page(filter, page, clock()),
    get: async (ref) => await lookupStored(repository, ref, { what: 'API key' }),
    find: (key) => repository.findByHash(hashKey(key)),
    async revoke (ref) {
      const now = clock()
      const record = lookup((await repository.alike(ref)).filter(({ revokedAt }) => revokedAt === null), ref, { what: 'active API key' })
      if (!await repository.revoke(record.id, now)) throw NotFound('active API key', ref)
      // All of them: the cache knows hashes only, and revoking is rare.
      stored.forget()
      watch.end(record.id)
      return { ...record, revokedAt: now }
    },
    async close () {
      watch.close()
      await uses.flush()
    }
  }
}

function noted (uses: KeyUses, principal: ApiKeyPrincipal | undefined, now: number): ApiKeyPrincipal | undefined {
  if (principal !== undefined) uses.note(principal.id, now)
  return principal
}

function makeRecord (options: NewApiKey, now: number, known: readonly string[]): { readonly key: string, readonly record: ApiKeyRecord } {
  checkNew(options, now, known)
  const id = options.id ?? createId()
  return {
    key: options.key ?? makeKey(id),
    record: {
      id,
      name: options.name,
      scopes: [...new Set(options.scopes)],
      repositories: options.repositories === undefined ? null : [...new Set(options.repositories)],
      createdBy: options.createdBy ?? null,
      createdAt: now,
      expiresAt: options.expiresAt ?? null,
      revokedAt: null,
      lastUsedAt: null
    }
  }
}

function checkNew (options: NewApiKey, now: number, known: readonly string[]): void {
  if (options.name === '' || options.name.length > MAX_NAME_LENGTH) throw InvalidRequest(`name: must have 1 to ${MAX_NAME_LENGTH} characters`)
  checkScopes(options.scopes, known)
  checkRepositories(options.repositories)
  if (options.expiresAt !== undefined && !(options.expiresAt > now && options.expiresAt < LAST_DATE)) throw InvalidRequest('expires_at: must be in the future, and before the year 10000')
}
