// The stored record of a webhook. Types only.
import type { Filter } from '../events/contract.ts'

/** `dead`: it has failed for too long, or its key has ended */
export type WebhookStatus = 'active' | 'failing' | 'dead'

export interface WebhookRecord {
  readonly id: string
  readonly url: string
  readonly filter: Filter
  /** sealed with the key of this data folder */
  readonly sealedSecret: string
  /** the key whose rights it has, by its durable id */
  readonly keyId: string
  readonly isEnabled: boolean
  readonly status: WebhookStatus
  /** the position in the journal after which it continues */
  readonly position: number
  /** failures in a row */
  readonly attempts: number
  readonly error: string | null
  /** epoch `ms`, as all times here */
  readonly failedAt: number | null
  readonly deliveredId: number | null
  readonly deliveredAt: number | null
  readonly createdAt: number
}

/** The fields that change during deliveries. */
export type Progress = Pick<WebhookRecord, 'status' | 'position' | 'attempts' | 'error' | 'failedAt' | 'deliveredId' | 'deliveredAt'>

/** The fields that a caller can change. */
export type Settings = Pick<WebhookRecord, 'url' | 'filter' | 'keyId' | 'isEnabled'>
