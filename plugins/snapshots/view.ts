// Snapshots and schedules as JSON.
import type { SnapshotRecord } from './record.ts'
import type { ScheduleRecord } from './schedules/record.ts'
import type { ScheduleView, SnapshotView } from './schemas.ts'

export function snapshotView (snapshot: SnapshotRecord): SnapshotView {
  const { compression, memoryBytes, compressedBytes, diskBytes } = snapshot
  return {
    id: snapshot.id,
    name: snapshot.name,
    kind: snapshot.kind,
    source_instance_id: snapshot.sourceId,
    source_instance_name: snapshot.sourceName,
    source_hypervisor: snapshot.hypervisor,
    created_at: timeText(snapshot.createdAt),
    size_bytes: diskBytes + (compressedBytes ?? memoryBytes ?? 0),
    tags: { ...snapshot.tags },
    ...(compression === null ? {} : { compression: { enabled: true, ...compression } }),
    compression_state: snapshot.compressionState,
    compression_error: snapshot.compressionError,
    compressed_size_bytes: compressedBytes,
    uncompressed_size_bytes: memoryBytes
  }
}

export function scheduleView (schedule: ScheduleRecord): ScheduleView {
  const { maxCount, maxAge } = schedule
  return {
    instance_id: schedule.instanceId,
    interval: schedule.interval,
    retention: { ...(maxCount === null ? {} : { max_count: maxCount }), ...(maxAge === null ? {} : { max_age: maxAge }) },
    name_prefix: schedule.namePrefix,
    metadata: { ...schedule.metadata },
    next_run_at: timeText(schedule.nextRunAt),
    last_run_at: schedule.lastRunAt === null ? null : timeText(schedule.lastRunAt),
    last_snapshot_id: schedule.lastSnapshotId,
    last_error: schedule.lastError,
    created_at: timeText(schedule.createdAt),
    updated_at: timeText(schedule.updatedAt)
  }
}

function timeText (epochMs: number): string {
  return new Date(epochMs).toISOString()
}
