// The errors of the builds plugin, beside those that every plugin shares. Codes are API: they never change.
import { defineError } from '../../core/errors/define.ts'

export const QueueFull = defineError('too_many_builds', 'rate-limited', (limit: number) =>
  `${limit} builds are waiting already; try again when some of them are over`)

/** The same for one key, or for all unfinished builds. */
export const TooManyBuilds = defineError('too_many_builds', 'rate-limited', (whose: string, most: number) =>
  `${whose} has ${most} builds that are not over, and may have no more (plugins.builds.config.maxPerKey); try again when some of them are`)

export const SourceTooLarge = defineError('source_too_large', 'invalid', (limit: string) => `source: must be at most ${limit}`)

export const DiskFull = defineError('insufficient_resources', 'conflict', () => 'source: the disk of the data folder is full; no build was made')

export const BuildFinished = defineError('invalid_state', 'wrong-state', (id: string, status: string) =>
  `build ${id} cannot be cancelled: it is ${status}`)

export const BuilderExists = defineError('already_exists', 'conflict', (id: string) => `id: a builder with the id ${id} exists already`)

export const BuilderBusy = defineError('builder_busy', 'conflict', (id: string, why: string) => `builder ${id} ${why}`)

/** The builder has no usable cache disk. */
export const BuilderUnusable = defineError('builder_unusable', 'conflict', (id: string, why: string) => `builder_id: builder ${id} ${why}`)

/** The end of a build through the fault of its Dockerfile, source or network; the text is the build's error. */
export const BuildFailed = defineError('build_failed', 'invalid', (message: string) => message)
