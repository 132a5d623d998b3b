// What the images plugin answers when a call cannot be served.
import { NotFound } from '../../core/errors/common.ts'
import { defineError } from '../../core/errors/define.ts'
import { InvalidName } from '../../core/library/oci/errors.ts'

export const InvalidPlatform = defineError('invalid_platform', 'invalid', (why: string) => `platform: ${why}`)

/** The registry says that it has no such repository or tag. */
export const ManifestNotFound = defineError('not_found', 'not-found', (name: string) =>
  `image ${name} does not exist in its registry, or the registry hides it without a login`)

/** The image exists, but not for the processor of this host. */
export const PlatformNotAvailable = defineError('platform_not_available', 'not-found', (name: string, platform: string, has: string) =>
  `image ${name} is not available for ${platform}; it has ${has}`)

/** The upstream registry asks for fewer requests. */
export const RateLimited = defineError('rate_limited', 'rate-limited', (name: string) =>
  `the registry of ${name} limits how often this host may ask; try later or use a login`)

/** More pulls than a key, or this server, may have at a time. */
export const TooManyPulls = defineError('too_many_pulls', 'rate-limited', (whose: string, most: number) =>
  `${whose} has ${most} pulls that are not over, and may have no more (plugins.images.config.maxPulls, maxPullsPerKey)`, { retryAfterSeconds: 5 })

/** Another pull of the same name runs with another login. */
export const PullConflict = defineError('conflict', 'conflict', (name: string) =>
  `image ${name} is being pulled with other credentials; wait until that pull has ended`)

/** The image is on its way. */
export const ImageNotReady = defineError('image_not_ready', 'invalid', (name: string, status: string) =>
  `image ${name} is not ready yet (${status}); try again shortly`)

/** The image could not be pulled or converted. */
export const ImageFailed = defineError('image_failed', 'invalid', (name: string, why: string) =>
  `image ${name} cannot be used: ${why}; POST /images pulls it again`)

/** Errors that refuse a pull. */
export const PULL_ERRORS = [NotFound, InvalidName, InvalidPlatform, ManifestNotFound, PlatformNotAvailable, PullConflict, RateLimited]
