// Makes the image of builders on this host and puts it into the built-in registry.
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { HostCommands } from '../../../core/contracts/services.ts'
import type { RegistrySource } from '../../registry/contract.ts'
import { fetchPackages } from '../../../core/library/debian/packages.ts'
import { archive, makeRoot } from '../../../core/library/debian/root.ts'
import { ociArchitecture } from '../../../core/library/oci/architecture.ts'
import { CONFIGURATION, PACKAGES, PROGRAMS, recipeHash, REPOSITORY } from './recipe.ts'
import { blobOf, createRegistryClient, fileBlob } from './registry-client.ts'
import { tryPrograms } from './trial.ts'

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
const CONFIG = 'application/vnd.oci.image.config.v1+json'
// The image never leaves this host: compression would only cost time.
const LAYER = 'application/vnd.oci.image.layer.v1.tar'

export interface MakeOptions {
  readonly commands: HostCommands
  readonly registry: Pick<RegistrySource, 'open'>
  /** an empty folder for this work */
  readonly work: string
  readonly signal: AbortSignal
}

/** @returns the digest of its manifest */
export async function makeImage ({ commands, registry, work, signal }: MakeOptions): Promise<string> {
  await fetchPackages(commands, work, PACKAGES, { signal })
  const root = await makeRoot(commands, work, { signal })
  await tryPrograms(commands, root, PROGRAMS, signal)
  for (const [path, content] of Object.entries(CONFIGURATION)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), content)
  }
  const file = join(work, 'layer.tar')
  await archive(commands, root, file, signal)
  return await pushLayer(registry, file, signal)
}

async function pushLayer (registry: Pick<RegistrySource, 'open'>, file: string, signal: AbortSignal): Promise<string> {
  const layer = await fileBlob(LAYER, file)
  const architecture = ociArchitecture()
  const created = new Date().toISOString()
  const config = blobOf(CONFIG, JSON.stringify({
    created, architecture, os: 'linux', config: { Env: ['PATH=/usr/sbin:/usr/bin'], Cmd: ['sleep', 'infinity'] },
    rootfs: { type: 'layers', diff_ids: [layer.digest] }, history: [{ created, created_by: 'berth: the image of builders' }]
  }))
  const describe = ({ mediaType, digest, size }: typeof layer): object => ({ mediaType, digest, size })
  const channel = registry.open({ read: [], write: [REPOSITORY] })
  try {
    const client = createRegistryClient(channel, signal)
    for (const blob of [layer, config]) await client.putBlob(REPOSITORY, blob)
    return await client.putManifest(REPOSITORY, recipeHash(), MANIFEST, JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST, config: describe(config), layers: [describe(layer)] }))
  } finally {
    channel.revoke()
  }
}
