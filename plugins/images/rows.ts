// Rows as the database gives them, turned into what the rest of the plugin works with.
import { Type } from 'typebox'
import { shape } from '../../core/json/shape.ts'
import type { ImageStatus } from './contract.ts'
import type { RunConfig } from './image-config.ts'
import type { AttemptState, ContentRow, TagRow } from './record.ts'

export interface StoredTagRow {
  id: string
  host_id: string
  name: string
  repository: string
  digest: string | null
  next_digest: string | null
  state: AttemptState
  error: string | null
  tags: string
  created_at: number | string
}

export interface StoredContentRow {
  id: string
  host_id: string
  digest: string
  repository: string
  status: ImageStatus
  error: string | null
  platform: string
  // MySQL's driver may give a bigint as text
  layer_bytes: number | string
  recompress: number
  /** null in rows from before there were layers */
  layer_count: number | null
  size_bytes: number | string | null
  config: string | null
  created_at: number | string
}

const StringMap = Type.Record(Type.String(), Type.String())
const isStringMap = shape(StringMap)
const Strings = Type.Array(Type.String())
const isRunConfig = shape(Type.Object({
  cmd: Type.Optional(Strings),
  entrypoint: Type.Optional(Strings),
  env: StringMap,
  workingDir: Type.Optional(Type.String()),
  user: Type.Optional(Type.String()),
  stopSignal: Type.Integer()
}))

export function tagOf (row: StoredTagRow): TagRow {
  return {
    name: row.name,
    repository: row.repository,
    digest: row.digest ?? undefined,
    nextDigest: row.next_digest ?? undefined,
    state: row.state,
    error: row.error ?? undefined,
    tags: stored(isStringMap, row.tags),
    createdAt: new Date(Number(row.created_at))
  }
}

/** What the name means, and what it will mean. */
export function digestsOf (row: StoredTagRow): string[] {
  return [row.digest, row.next_digest].filter((digest) => digest !== null)
}

export function contentOf (row: StoredContentRow): ContentRow {
  return {
    digest: row.digest,
    repository: row.repository,
    status: row.status,
    error: row.error ?? undefined,
    platform: row.platform,
    layerBytes: Number(row.layer_bytes),
    recompress: row.recompress !== 0,
    layerCount: row.layer_count ?? undefined,
    sizeBytes: row.size_bytes === null ? undefined : Number(row.size_bytes),
    run: row.config === null ? undefined : readRun(row.config),
    createdAt: new Date(Number(row.created_at))
  }
}

function readRun (json: string): RunConfig {
  return stored(isRunConfig, json)
}

function stored<T> (isWhole: (value: unknown) => value is T, json: string): T {
  const value: unknown = JSON.parse(json)
  if (!isWhole(value)) throw new Error('a row of an image cannot be read: it is damaged, or of a later version')
  return value
}
