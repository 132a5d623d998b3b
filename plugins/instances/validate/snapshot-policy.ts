// Rules of snapshot_policy: each algorithm has its own range of levels.
import { parseDuration } from '../../../core/units.ts'
import { InvalidSnapshotPolicy } from '../errors.ts'
import type { SnapshotPolicy } from '../model/record.ts'
import { printable } from './env.ts'

type Compression = NonNullable<SnapshotPolicy['compression']>

const RANGE = { zstd: [1, 19], lz4: [0, 9] } as const

/** The policy to store, with the defaults of an enabled compression filled in. @throws invalid_snapshot_policy */
export function checkSnapshotPolicy (policy: SnapshotPolicy | undefined): SnapshotPolicy | undefined {
  const { compression, standby_compression_delay: delay } = policy ?? {}
  if (delay !== undefined && parseDuration(delay) === undefined) throw InvalidSnapshotPolicy('snapshot_policy.standby_compression_delay', `"${printable(delay)}" is not a duration such as 30s or 5m`)
  return compression === undefined ? policy : { ...policy, compression: checkCompression('snapshot_policy.compression', compression) }
}

/** @param place the field's path in the request @throws invalid_snapshot_policy */
export function checkCompression (place: string, compression: Compression): Compression {
  // Algorithm and level are ignored when it is disabled.
  if (!compression.enabled) return compression
  const algorithm = compression.algorithm ?? 'zstd'
  const [least, most] = RANGE[algorithm]
  const level = compression.level ?? least
  if (level < least || level > most) {
    throw InvalidSnapshotPolicy(`${place}.level`, `${algorithm} takes ${least} to ${most}, not ${level}`)
  }
  return { enabled: true, algorithm, level }
}
