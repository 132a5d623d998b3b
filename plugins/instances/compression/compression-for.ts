// Which compression an image of an instance gets: what the request says, else what the instance's policy says, else what the server's config says.
import type { Compression } from '../../../core/library/compressed-memory.ts'
import { parseDuration } from '../../../core/units.ts'
import type { StoredImage } from '../memory-image/files.ts'
import type { CompressionRequest, InstanceSpec } from '../model/record.ts'
import type { StandbyWishes } from '../validate/standby.ts'
import { checkCompression } from '../validate/snapshot-policy.ts'

/**
 * `undefined`: none, which a request or a policy can also ask for where the server would compress.
 * @param server what the config says
 * @throws invalid_snapshot_policy
 */
export function compressionFor (asked: CompressionRequest | undefined, spec: Pick<InstanceSpec, 'snapshotPolicy'>, server: Compression | undefined): Compression | undefined {
  if (asked !== undefined) return resolved('compression', asked)
  const policy = spec.snapshotPolicy?.compression
  return policy === undefined ? server : resolved('snapshot_policy.compression', policy)
}

/** What is stored with an image about its compression. */
export function wantedFor ({ compression: asked, delayMs }: StandbyWishes, spec: InstanceSpec, server: Compression | undefined): NonNullable<StoredImage['wanted']> | null {
  const compression = compressionFor(asked, spec, server)
  if (compression === undefined) return null
  const delay = delayMs ?? policyDelayMs(spec)
  return { ...compression, notBefore: Date.now() + delay, delayMs: delay }
}

function policyDelayMs ({ snapshotPolicy }: Pick<InstanceSpec, 'snapshotPolicy'>): number {
  return parseDuration(snapshotPolicy?.standby_compression_delay ?? '0') ?? 0
}

function resolved (place: string, asked: CompressionRequest): Compression | undefined {
  const { enabled, algorithm, level } = checkCompression(place, asked)
  return enabled && algorithm !== undefined && level !== undefined ? { algorithm, level } : undefined
}
