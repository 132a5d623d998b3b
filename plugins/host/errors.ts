// Errors that this plugin alone answers with.
import { defineError } from '../../core/errors/define.ts'

export const TooManyFollowers = defineError('too_many_streams', 'rate-limited', (most: number) => `${most} streams of the log are open, and no more are allowed (plugins.host.config.maxFollowers)`)
