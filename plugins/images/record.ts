// The two things that are stored, names and contents, and how they look together from outside.
import type { Image, ImageStatus } from './contract.ts'
import type { RunConfig } from './image-config.ts'

export interface ContentRow {
  readonly digest: string
  /** where it comes from, `domain/path` */
  readonly repository: string
  readonly status: ImageStatus
  readonly error: string | undefined
  readonly platform: string
  /** compressed size of the layers, `bytes` */
  readonly layerBytes: number
  readonly recompress: boolean
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
  /** what the name means; its content is ready */
  readonly digest: string | undefined
  /** what it will mean when that content is ready */
  readonly nextDigest: string | undefined
  readonly state: AttemptState
  readonly error: string | undefined
  readonly tags: Readonly<Record<string, string>>
  readonly createdAt: Date
}

/** An image as the API shows it. */
export interface ImageRecord extends Image {
  readonly platform?: string | undefined
  /** 1 for the next to be pulled */
  readonly queuePosition?: number | undefined
}

type Find = (digest: string) => ContentRow | undefined
type Position = (digest: string) => number | undefined

/** What the name means now. While it is being pulled anew, that is still the old content. */
export function present (tag: TagRow, find: Find, position: Position): ImageRecord {
  return tag.digest === undefined ? attempt(tag, find, position) : withContent(tag, tag.digest, find(tag.digest), position)
}

/** What the last attempt to pull the name has come to. */
export function attempt (tag: TagRow, find: Find, position: Position): ImageRecord {
  const base = { name: tag.name, digest: '', createdAt: tag.createdAt, tags: tag.tags }
  if (tag.state === 'resolving') return { ...base, status: 'pending' }
  if (tag.state === 'failed') return { ...base, status: 'failed', error: tag.error }
  const digest = tag.nextDigest ?? tag.digest
  return digest === undefined ? { ...base, status: 'pending' } : withContent(tag, digest, find(digest), position)
}

/** Whether something newer than the present meaning is on its way. */
export function isUnderWay (tag: TagRow, find: Find): boolean {
  if (tag.state === 'resolving') return true
  if (tag.nextDigest === undefined) return false
  const status = find(tag.nextDigest)?.status
  return status !== 'failed' && status !== 'ready'
}

function withContent (tag: Pick<TagRow, 'name' | 'tags' | 'createdAt'>, digest: string, content: ContentRow | undefined, position: Position): ImageRecord {
  const base = { name: tag.name, digest, createdAt: tag.createdAt, tags: tag.tags }
  // between two statements of a deletion
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

/** A content on its own, for a holder whose name is gone. */
export function bare (content: ContentRow, position: Position): ImageRecord {
  return withContent({ name: `${content.repository}@${content.digest}`, tags: {}, createdAt: content.createdAt }, content.digest, content, position)
}
