// The two kinds of stored records, names and contents, and their combined form for the API.
import type { Image, ImageStatus } from './contract.ts'
import type { RunConfig } from './image-config.ts'

export interface ContentRow {
  readonly digest: string
  /** its source, `domain/path` */
  readonly repository: string
  readonly status: ImageStatus
  readonly error: string | undefined
  readonly platform: string
  /** compressed size of the layers, `bytes` */
  readonly layerBytes: number
  readonly recompress: boolean
  /** absent: not known, since it was pulled by an earlier version */
  readonly layerCount: number | undefined
  /** of the root file system, `bytes`; unknown until ready */
  readonly sizeBytes: number | undefined
  readonly run: RunConfig | undefined
  readonly createdAt: Date
}

/** `resolving`: the registry is being asked. `failed`: it gave no digest. `resolved`: it did. */
export type AttemptState = 'resolving' | 'resolved' | 'failed'

export interface TagRow {
  readonly name: string
  readonly repository: string
  /** what the name means now; its content is ready */
  readonly digest: string | undefined
  /** what the name will mean once that content is ready */
  readonly nextDigest: string | undefined
  readonly state: AttemptState
  readonly error: string | undefined
  readonly tags: Readonly<Record<string, string>>
  readonly createdAt: Date
}

/** An image as the API shows it. */
export interface ImageRecord extends Image {
  readonly platform?: string | undefined
  /** 1 for the next pull */
  readonly queuePosition?: number | undefined
}

type Find = (digest: string) => ContentRow | undefined
type Position = (digest: string) => number | undefined

/** The image that the name means now. During a new pull, that is still the old content. */
export function present (tag: TagRow, find: Find, position: Position): ImageRecord {
  return tag.digest === undefined ? attempt(tag, find, position) : withContent(tag, tag.digest, find(tag.digest), position)
}

/** The state of the last attempt to pull the name. */
export function attempt (tag: TagRow, find: Find, position: Position): ImageRecord {
  const base = { name: tag.name, digest: '', createdAt: tag.createdAt, tags: tag.tags }
  if (tag.state === 'resolving') return { ...base, status: 'pending' }
  if (tag.state === 'failed') return { ...base, status: 'failed', error: tag.error }
  const digest = tag.nextDigest ?? tag.digest
  return digest === undefined ? { ...base, status: 'pending' } : withContent(tag, digest, find(digest), position)
}

/** Whether a newer content than the current one is being pulled. */
export function isUnderWay (tag: TagRow, find: Find): boolean {
  if (tag.state === 'resolving') return true
  if (tag.nextDigest === undefined) return false
  const status = find(tag.nextDigest)?.status
  return status !== 'failed' && status !== 'ready'
}

function withContent (tag: Pick<TagRow, 'name' | 'tags' | 'createdAt'>, digest: string, content: ContentRow | undefined, position: Position): ImageRecord {
  const base = { name: tag.name, digest, createdAt: tag.createdAt, tags: tag.tags }
  // possible between two statements of a deletion
  if (content === undefined) return { ...base, status: 'pending' }
  return {
    ...base,
    status: content.status,
    platform: content.platform,
    error: content.error,
    queuePosition: content.status === 'pending' ? position(digest) : undefined,
    sizeBytes: content.sizeBytes,
    cmd: content.run?.cmd,
    entrypoint: content.run?.entrypoint,
    env: content.run?.env,
    workingDir: content.run?.workingDir,
    user: content.run?.user,
    stopSignal: content.run?.stopSignal
  }
}

/** A content without a name, for a holder. */
export function bare (content: ContentRow, position: Position): ImageRecord {
  return withContent({ name: `${content.repository}@${content.digest}`, tags: {}, createdAt: content.createdAt }, content.digest, content, position)
}
