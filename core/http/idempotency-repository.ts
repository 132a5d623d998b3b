// The remembered answers; the only file that knows their table. Every step is one statement, so processes on one database agree.
import type { Knex } from 'knex'
import { isDuplicate } from '../db/transaction.ts'
import { hostOf } from './idempotency-owner.ts'

const TABLE = 'core_idempotency'
/** Rows of other hosts were made by their clocks, one of which may be wrong: what they wrote as the end of a row counts for themselves only, and others let it be for so long. */
const FOREIGN_MS = 7 * 24 * 3_600_000

export interface StoredAnswer { readonly status: number, readonly headers: Readonly<Record<string, string>>, readonly body: string }

export interface Claim {
  readonly id: string
  readonly requestHash: string
  /** the process that works on it, and when it began: unique for each claim */
  readonly owner: string
  readonly createdAt: number
  /** for this host */
  readonly expiresAt: number
  /** undefined while the request is running */
  readonly answer?: StoredAnswer
}

interface Row {
  readonly id: string
  readonly request_hash: string
  readonly owner: string
  readonly status: number | null
  readonly headers: string | null
  readonly body: string | null
  readonly created_at: number
  readonly expires_at: number
}

export interface IdempotencyRepository {
  /** Whether the claim is ours: of several at the same time exactly one gets it. */
  insert (claim: Claim): Promise<boolean>
  find (id: string): Promise<Claim | undefined>
  /** Takes an unanswered or expired claim over from `from`; false when another request was faster. */
  takeOver (from: Claim, to: Claim): Promise<boolean>
  answer (claim: Claim, answer: StoredAnswer): Promise<void>
  release (claim: Claim): Promise<void>
  /** Limits how long answers of this host are remembered: until `latest` at most. */
  shorten (latest: number): Promise<void>
  deleteExpired (now: number): Promise<void>
}

export function createIdempotencyRepository (database: Knex, hostId: string): IdempotencyRepository {
  const ofThisHost = `${hostId}|%`
  const mine = (claim: Claim): Pick<Row, 'id' | 'owner' | 'created_at'> => ({ id: claim.id, owner: claim.owner, created_at: claim.createdAt })
  return {
    async insert (claim) {
      try {
        await database<Row>(TABLE).insert(toRow(claim))
        return true
      } catch (error) {
        if (isDuplicate(error)) return false
        throw error
      }
    },
    async find (id) {
      const row = await database<Row>(TABLE).where({ id }).first()
      return row === undefined ? undefined : toClaim(row, hostId)
    },
    async takeOver (from, to) {
      return await database<Row>(TABLE).where(mine(from)).update(toRow(to)) > 0
    },
    async answer (claim, { status, headers, body }) {
      await database<Row>(TABLE).where(mine(claim)).update({ status, headers: JSON.stringify(headers), body })
    },
    async release (claim) { await database<Row>(TABLE).where(mine(claim)).delete() },
    async shorten (latest) { await database<Row>(TABLE).where('expires_at', '>', latest).where('owner', 'like', ofThisHost).update({ expires_at: latest }) },
    async deleteExpired (now) {
      await database<Row>(TABLE).where('expires_at', '<=', now).where('owner', 'like', ofThisHost).delete()
      await database<Row>(TABLE).where('created_at', '<=', now - FOREIGN_MS).delete()
    }
  }
}

function toRow (claim: Claim): Row {
  return {
    id: claim.id,
    request_hash: claim.requestHash,
    owner: claim.owner,
    status: null,
    headers: null,
    body: null,
    created_at: claim.createdAt,
    expires_at: claim.expiresAt
  }
}

function toClaim (row: Row, hostId: string): Claim {
  return {
    id: row.id,
    requestHash: row.request_hash,
    owner: row.owner,
    createdAt: row.created_at,
    expiresAt: hostOf(row.owner) === hostId ? row.expires_at : row.created_at + FOREIGN_MS,
    ...(row.status === null ? {} : { answer: { status: row.status, headers: parseHeaders(row.headers ?? '{}'), body: row.body ?? '' } })
  }
}

function parseHeaders (text: string): Record<string, string> {
  const headers: unknown = JSON.parse(text)
  return typeof headers === 'object' && headers !== null ? Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])) : {}
}
