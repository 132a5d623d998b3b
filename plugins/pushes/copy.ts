// Copies one image from a registry that has it to another, unchanged.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Type } from 'typebox'
import { shape } from '../../core/json/shape.ts'
import type { RegistryCredentials } from '../../core/library/oci/credentials.ts'
import { atDigest } from '../../core/library/oci/reference.ts'
import { sumOfSizes } from '../../core/library/oci/sizes.ts'
import type { ImageSources, RegistryAccess } from '../images/contract.ts'
import { explainCopy, explainReading, PushFailure } from './failures.ts'
import type { Folders } from './folders.ts'
import type { ImageWeight, PushRecord } from './record.ts'

export interface CopyOptions {
  readonly credentials: RegistryCredentials | undefined
  readonly signal: AbortSignal
  /** called when the manifest has been read */
  readonly weighed: (weight: ImageWeight) => Promise<void>
}

/** Copies the image of a push. @throws PushFailure, or the signal's reason */
export type Copier = (push: PushRecord, options: CopyOptions) => Promise<void>

export interface CopierParts {
  readonly folders: Folders
  readonly sources: ImageSources
  readonly timeoutMs: number
}

/** One push under way. */
interface Run extends CopierParts, CopyOptions {
  readonly push: PushRecord
  readonly folder: string
}

interface Source { readonly name: string, readonly access: RegistryAccess, readonly weight: ImageWeight }

const isManifest = shape(Type.Object({ layers: Type.Array(Type.Object({ size: Type.Number() })) }))

export function createCopier (parts: CopierParts): Copier {
  return async (push, options) => await parts.folders.using(async (folder) => await copyFrom({ ...parts, ...options, push, folder }))
}

async function copyFrom (run: Run): Promise<void> {
  const source = await openSource(run)
  try {
    await run.weighed(source.weight)
    await copyTo(run, source)
  } finally {
    await source.access.close()
  }
}

/** Opens the first of the origins that still has the image. */
async function openSource (run: Run): Promise<Source> {
  const { push: { origins, digest }, signal } = run
  let failure = new PushFailure('not-found', `no registry is known that has ${digest}`)
  for (const origin of origins) {
    const name = atDigest(origin, digest)
    try {
      return await readSource(run, origin, name)
    } catch (error) {
      signal.throwIfAborted()
      failure = explainReading(error, name)
    }
  }
  throw failure
}

async function readSource ({ sources, push, folder, signal, timeoutMs }: Run, origin: string, name: string): Promise<Source> {
  const access = await sources.openRegistry({ repository: origin, folder, signal })
  try {
    const manifest = await sources.manifest({ access, name, end: push.digest }, { signal, timeoutMs })
    return { name, access, weight: weightOf(manifest, name) }
  } catch (error) {
    await access.close()
    throw error
  }
}

function weightOf (manifest: string, name: string): ImageWeight {
  const parsed = parse(manifest)
  if (!isManifest(parsed)) throw new PushFailure('unsupported', `the manifest of ${name} cannot be read`)
  const bytes = sumOfSizes(parsed.layers.map(({ size }) => size))
  if (bytes === undefined) throw new PushFailure('unsupported', `the manifest of ${name} names sizes of layers that cannot be true`)
  return { layers: parsed.layers.length, bytes }
}

function parse (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

async function copyTo (run: Run, source: Source): Promise<void> {
  const { sources, push, credentials, folder, signal } = run
  const end = push.destination.lastIndexOf(':')
  try {
    const target = await sources.openRegistry({
      repository: push.destination.slice(0, end), credentials, folder, signal, purpose: 'write', insecure: push.insecure
    })
    try {
      await copy(run, source.access, target, push.destination.slice(end))
    } finally {
      await target.close()
    }
  } catch (error) {
    signal.throwIfAborted()
    throw explainCopy(error, { origin: source.name, target: push.target })
  }
}

async function copy ({ sources, push, folder, signal, timeoutMs }: Run, from: RegistryAccess, to: RegistryAccess, tag: string): Promise<void> {
  const digestFile = join(folder, 'digest')
  // skopeo ends with the server: the next server would know only that the push has failed.
  await sources.skopeo([
    'copy', '--quiet', '--retry-times', '2', '--remove-signatures', '--preserve-digests', '--digestfile', digestFile,
    '--src-authfile', from.authFile, '--dest-authfile', to.authFile,
    ...from.tlsVerify ? [] : ['--src-tls-verify=false'],
    ...to.tlsVerify ? [] : ['--dest-tls-verify=false'],
    `docker://${atDigest(from.repository, push.digest)}`, `docker://${to.repository}${tag}`
  ], [from, to], { signal, timeoutMs, env: { TMPDIR: folder } })
  const pushed = (await readFile(digestFile, 'utf8')).trim()
  if (pushed !== push.digest) throw new PushFailure('corrupt', `the registry of ${push.target} has got ${pushed} instead of ${push.digest}`)
}
