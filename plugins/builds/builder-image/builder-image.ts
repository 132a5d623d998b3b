// The image for VMs of builds: the operator's own, or one that is made here, once, at its first use.
import { mkdir, mkdtemp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { HostCommands, Logger } from '../../../core/contracts/services.ts'
import { BerthError } from '../../../core/errors/define.ts'
import { removeTree, writeFileDurably } from '../../../core/fs/durable.ts'
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'
import { HostCommandFailed, HostCommandMissing } from '../../../core/process/errors.ts'
import { readIfThere } from '../../../core/fs/read-if-there.ts'
import type { ImageService } from '../../images/contract.ts'
import type { RegistrySource } from '../../registry/contract.ts'
import { BuilderImageUnavailable } from './errors.ts'
import { makeImage } from './make-image.ts'
import { recipeHash, REPOSITORY } from './recipe.ts'

const Note = Type.Object({ recipe: Type.String(), digest: Type.String({ pattern: '^sha256:[0-9a-f]{64}$' }) })
const NOTE = 'builder.json'
const WORK_PREFIX = 'making-'

export interface BuilderImageOptions {
  readonly log: Logger
  readonly commands: HostCommands
  readonly images: Pick<ImageService, 'require'>
  readonly registry: Pick<RegistrySource, 'open'>
  /** for this image alone */
  readonly folder: string
  /** the operator's image; absent: ours */
  readonly configured?: string
  readonly readyTimeoutMs: number
}

export interface BuilderImage {
  /** The image's name, once VMs can start from it. Callers that come while it is being made wait for it. */
  ready (signal: AbortSignal): Promise<string>
  /** Ends what is under way. */
  close (): Promise<void>
}

export function createBuilderImage (options: BuilderImageOptions): BuilderImage {
  const closing = new AbortController()
  let making: Promise<string> | undefined
  return {
    async ready (signal) {
      signal.throwIfAborted()
      if (options.configured !== undefined) {
        await options.images.require(options.configured, options.readyTimeoutMs, signal)
        return options.configured
      }
      // It is shared by all waiting callers, so it continues when one of them leaves.
      making ??= ours(options, closing.signal).finally(() => { making = undefined })
      making.catch(() => undefined)
      return await unlessAborted(signal, making)
    },
    async close () {
      closing.abort(new Error('the server stops'))
      await making?.catch(() => undefined)
    }
  }
}

async function ours (options: BuilderImageOptions, signal: AbortSignal): Promise<string> {
  await mkdir(options.folder, { recursive: true, mode: 0o700 })
  const known = await noted(options.folder)
  if (known !== undefined) {
    try {
      return await usable(options, known, signal)
    } catch (error) {
      // Somebody has removed it from the registry.
      if (!(error instanceof BerthError) || (error.code !== 'image_failed' && error.code !== 'not_found')) throw error
      options.log.info({ err: error }, 'the image of builders is gone, and is made anew')
    }
  }
  const digest = await make(options, signal)
  // A pushed image becomes ready under its tag; afterwards it is found by its digest.
  await options.images.require(`localhost/${REPOSITORY}:${recipeHash()}`, options.readyTimeoutMs, signal)
  return await usable(options, digest, signal)
}

/** By its digest, so that nobody can put another image under its name. */
async function usable ({ images, readyTimeoutMs }: BuilderImageOptions, digest: string, signal: AbortSignal): Promise<string> {
  const name = `localhost/${REPOSITORY}@${digest}`
  await images.require(name, readyTimeoutMs, signal)
  return name
}

async function make (options: BuilderImageOptions, signal: AbortSignal): Promise<string> {
  const { log, commands, registry, folder } = options
  // left by a server that was killed meanwhile
  for (const name of await readdir(folder)) if (name.startsWith(WORK_PREFIX)) await removeTree(join(folder, name))
  const work = await mkdtemp(join(folder, WORK_PREFIX))
  const startedAt = performance.now()
  log.info('the image of builders is being made of Debian packages')
  try {
    const digest = await makeImage({ commands, registry, work, signal })
    await writeFileDurably(join(folder, NOTE), JSON.stringify({ recipe: recipeHash(), digest }))
    log.info({ digest, durationMs: Math.round(performance.now() - startedAt) }, 'the image of builders is made')
    return digest
  } catch (error) {
    if (error instanceof HostCommandFailed || HostCommandMissing.is(error)) throw BuilderImageUnavailable.from(error, error.message)
    throw error
  } finally {
    await removeTree(work)
  }
}

async function noted (folder: string): Promise<string | undefined> {
  const text = await readIfThere(join(folder, NOTE))
  const note: unknown = text === undefined ? undefined : JSON.parse(text)
  return Value.Check(Note, note) && note.recipe === recipeHash() ? note.digest : undefined
}
