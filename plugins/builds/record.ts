// The stored record of a build, and its order.
import type { NetworkMode } from './run.ts'
import type { MediatedMode } from '../../proxy/contract/modes.ts'

export type BuildStatus = 'queued' | 'building' | 'pushing' | 'ready' | 'failed' | 'cancelled'
export type FinalStatus = 'ready' | 'failed' | 'cancelled'

/** of unfinished builds */
export const UNFINISHED = ['queued', 'building', 'pushing'] as const

export interface StoredProvenance {
  readonly sourceHash: string
  readonly baseImageDigest?: string
  readonly lockfileHashes?: Readonly<Record<string, string>>
  readonly builder?: string
  readonly builderVersion?: string
  /** ISO 8601 */
  readonly timestamp?: string
}

export interface BuildRecord {
  readonly id: string
  readonly status: BuildStatus
  readonly builderId: string | null
  /** the build's VM */
  readonly instanceId: string | null
  /** known once the registry has the image; shown once it is ready */
  readonly imageRef: string | null
  readonly imageDigest: string | null
  readonly error: string | null
  readonly provenance: StoredProvenance
  readonly tags: Readonly<Record<string, string>>
  /** epoch ms; no two builds of a host have the same: it is their order */
  readonly createdAt: number
  readonly startedAt: number | null
  readonly completedAt: number | null
}

/** A build's order. It is stored beside the source, and removed with it. */
export interface BuildOrder {
  /** the key that asked for it, by its durable id; an earlier version has stored none */
  readonly keyId?: string
  readonly dockerfile?: string
  readonly dockerfilePath?: string
  readonly buildArgs: Readonly<Record<string, string>>
  readonly target?: string
  readonly noCache: boolean
  /** names; values are read when the build starts */
  readonly secretIds: readonly string[]
  readonly cacheScope?: string
  readonly globalCacheKey?: string
  readonly writesGlobalCache: boolean
  readonly baseImageDigest?: string
  readonly imageName?: string
  readonly readsRegistry: boolean
  readonly builderId?: string
  readonly vcpus: number
  readonly memoryMb: number
  readonly timeoutSeconds: number
  readonly network: { readonly mode: NetworkMode, readonly egress?: MediatedMode }
}

/** Not below 0: the clock may have been put back meanwhile. */
export function tookMs (startedAt: number, completedAt: number): number {
  return Math.max(0, completedAt - startedAt)
}

/** How a build ended. */
export interface BuildEnd {
  readonly status: FinalStatus
  readonly error?: string
}

export function isFinal (status: BuildStatus): status is FinalStatus {
  return status === 'ready' || status === 'failed' || status === 'cancelled'
}
