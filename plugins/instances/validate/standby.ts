// Rules of a standby request.
import { InvalidRequest, PluginDisabled } from '../../../core/errors/common.ts'
import { parseDuration } from '../../../core/units.ts'
import type { StandbyInstance } from '../schemas.ts'
import { printable } from './env.ts'
import { checkCompression } from './snapshot-policy.ts'

/** @throws the first rule that it breaks */
export function checkStandby ({ compression, compression_delay: delay }: StandbyInstance): void {
  if (compression !== undefined) checkCompression('compression', compression)
  if (delay !== undefined && parseDuration(delay) === undefined) throw InvalidRequest(`compression_delay: "${printable(delay)}" is not a duration such as 30s or 5m`)
  if (compression?.enabled === true) throw PluginDisabled('snapshots', 'compression')
}
