// Copies the layers of a scope's cache to the shared cache, within the built-in registry: buildah writes to one cache only.
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { RegistrySource } from '../../registry/contract.ts'
import { createRegistryClient, type RegistryClient } from '../builder-image/registry-client.ts'

const Part = Type.Object({ digest: Type.String() })
const Manifest = Type.Object({ config: Part, layers: Type.Array(Part) })

/** Adds to `to` what is in `from` and missing there. The image is pushed already: what cannot be shared is told to `note`, and fails no build. @throws the signal's reason */
export async function shareCache (registry: Pick<RegistrySource, 'open'>, from: string, to: string, signal: AbortSignal, note: (line: string) => void): Promise<void> {
  const channel = registry.open({ read: [from], write: [to], quiet: [to] })
  try {
    await copyMissing(createRegistryClient(channel, signal), from, to)
  } catch (error) {
    signal.throwIfAborted()
    note(`the cache could not be shared with all builds: ${error instanceof Error ? error.message : String(error)}`)
  } finally {
    channel.revoke()
  }
}

async function copyMissing (client: RegistryClient, from: string, to: string): Promise<void> {
  const known = new Set(await client.tags(to))
  for (const tag of (await client.tags(from)).filter((each) => !known.has(each))) {
    const { mediaType, text } = await client.manifest(from, tag)
    const manifest: unknown = JSON.parse(text)
    if (!Value.Check(Manifest, manifest)) continue
    for (const { digest } of [manifest.config, ...manifest.layers]) await client.mountBlob(to, digest, from)
    await client.putManifest(to, tag, mediaType, text)
  }
}
