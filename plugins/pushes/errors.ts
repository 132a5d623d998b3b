// The errors of the pushes plugin. Codes are API: they never change.
import { defineError } from '../../core/errors/define.ts'

/** The target cannot be pushed to, whatever the image is. */
export const InvalidTarget = defineError('invalid_target', 'invalid', (written: string, why: string) => `target: "${written}" ${why}`)

/** More pushes than a key, or this server, may have at a time. */
export const TooManyPushes = defineError('too_many_pushes', 'rate-limited', (whose: string, most: number) =>
  `${whose} has ${most} pushes that are not over, and may have no more (plugins.pushes.config.maxPushes, maxPushesPerKey)`, { retryAfterSeconds: 5 })

/** The image cannot be pushed yet. */
export const ImageNotReady = defineError('image_not_ready', 'conflict', (name: string, status: string) =>
  `image ${name} cannot be pushed: it is ${status}, not ready`)
