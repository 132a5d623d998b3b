// Builds as JSON.
import { tookMs, type BuildRecord, type StoredProvenance } from './record.ts'
import type { BuildView } from './schemas.ts'

export function buildView (record: BuildRecord, position: number | undefined): BuildView {
  const { id, status, builderId, instanceId, imageRef, imageDigest, error, provenance, tags, createdAt, startedAt, completedAt } = record
  const isReady = status === 'ready'
  return {
    id,
    // Its turn has come, and its row will say so in a moment.
    status: status === 'queued' && position === undefined ? 'building' : status,
    queue_position: status === 'queued' ? position ?? null : null,
    builder_id: builderId,
    builder_instance_id: instanceId,
    image_digest: isReady ? imageDigest : null,
    image_ref: isReady ? imageRef : null,
    error,
    provenance: isReady ? provenanceView(provenance) : { source_hash: provenance.sourceHash },
    created_at: time(createdAt),
    started_at: startedAt === null ? null : time(startedAt),
    completed_at: completedAt === null ? null : time(completedAt),
    duration_ms: startedAt === null || completedAt === null ? null : tookMs(startedAt, completedAt),
    ...Object.keys(tags).length === 0 ? {} : { tags: { ...tags } }
  }
}

function provenanceView ({ sourceHash, baseImageDigest, lockfileHashes, builder, builderVersion, timestamp }: StoredProvenance): BuildView['provenance'] {
  return {
    ...baseImageDigest === undefined ? {} : { base_image_digest: baseImageDigest },
    source_hash: sourceHash,
    lockfile_hashes: { ...lockfileHashes },
    // Only BuildKit's builds have a version of it.
    ...builder === 'buildkit' && builderVersion !== undefined ? { buildkit_version: builderVersion } : {},
    ...builder === undefined ? {} : { builder },
    ...builderVersion === undefined ? {} : { builder_version: builderVersion },
    ...timestamp === undefined ? {} : { timestamp }
  }
}

function time (ms: number): string {
  return new Date(ms).toISOString()
}
