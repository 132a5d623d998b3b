// Rules of a standby request.
import { InvalidRequest } from '../../../core/errors/common.ts'
import { parseDuration } from '../../../core/units.ts'
import type { CompressionRequest } from '../model/record.ts'
import type { StandbyInstance } from '../api/schemas.ts'
import { printable } from './env.ts'
import { checkCompression } from './snapshot-policy.ts'

export interface StandbyWishes {
  readonly compression?: CompressionRequest
  /** how long the image stays uncompressed at least; absent: as the instance's policy says */
  readonly delayMs?: number
}

/** @throws the first rule that it breaks */
export function checkStandby ({ compression, compression_delay: delay }: StandbyInstance): StandbyWishes {
  if (compression !== undefined) checkCompression('compression', compression)
  const delayMs = delay === undefined ? undefined : parseDuration(delay)
  if (delay !== undefined && delayMs === undefined) throw InvalidRequest(`compression_delay: "${printable(delay)}" is not a duration such as 30s or 5m`)
  return { ...(delayMs === undefined ? {} : { delayMs }), ...(compression === undefined ? {} : { compression }) }
}
