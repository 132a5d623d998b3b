// Errors that this plugin alone answers with.
import { defineError } from '../../core/errors/define.ts'

/** The same for one key, or for all streams. */
export const TooManyFollowers = defineError('too_many_streams', 'rate-limited', (whose: string, most: number) =>
  `${whose} has ${most} streams of the log open, and may have no more (plugins.host.config.maxFollowers, of which one key may have a quarter)`)
