// Copies the layers of a scope's cache to the shared cache, within the built-in registry: buildah writes to one cache only.
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { RegistrySource } from '../../registry/contract.ts'
import { createRegistryClient } from '../builder-image/registry-client.ts'

const Part = Type.Object({ digest: Type.String() })
const Manifest = Type.Object({ config: Part, layers: Type.Array(Part) })

/** Adds to `to` what is in `from` and missing there. */
export async function shareCache (registry: Pick<RegistrySource, 'open'>, from: string, to: string, signal: AbortSignal): Promise<void> {
  const channel = registry.open({ read: [from], write: [to], quiet: [to] })
  try {
    const client = createRegistryClient(channel, signal)
    const known = new Set(await client.tags(to))
    for (const tag of (await client.tags(from)).filter((each) => !known.has(each))) {
      const { mediaType, text } = await client.manifest(from, tag)
      const manifest: unknown = JSON.parse(text)
      if (!Value.Check(Manifest, manifest)) continue
      for (const { digest } of [manifest.config, ...manifest.layers]) await client.mountBlob(to, digest, from)
      await client.putManifest(to, tag, mediaType, text)
    }
  } finally {
    channel.revoke()
  }
}
