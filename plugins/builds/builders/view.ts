// Builders as JSON.
import type { BuildQueue } from '../queue/build-queue.ts'
import type { BuilderRecord, BuilderStatus } from './record.ts'
import type { BuilderView } from './schemas.ts'

export function builderView (record: BuilderRecord, queue: BuildQueue): BuilderView {
  const { id, name, diskSizeGb, tags, createdAt, lastUsedAt } = record
  return {
    id,
    ...name === null ? {} : { name },
    disk_size_gb: diskSizeGb,
    max_concurrency: 1,
    status: shown(record.status),
    active_build_id: queue.activeOf(id) ?? null,
    queued_builds: queue.waitingFor(id),
    last_used_at: lastUsedAt === null ? null : new Date(lastUsedAt).toISOString(),
    created_at: new Date(createdAt).toISOString(),
    ...Object.keys(tags).length === 0 ? {} : { tags: { ...tags } }
  }
}

function shown (status: BuilderRecord['status']): BuilderStatus {
  if (status === 'creating') throw new Error('a builder that is being made is shown to nobody')
  return status
}
