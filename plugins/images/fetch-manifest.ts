// Reads a manifest from a registry, which may give another one than was asked for: skopeo compares nothing when it only shows one.
import { digestOf } from '../../core/library/oci/digest.ts'
import type { ImageSources, ToolOptions, WantedManifest } from './contract.ts'
import { PullFailure } from './failures.ts'

/** @throws PullFailure `corrupt`, or what the command reported */
export async function fetchManifest (skopeo: ImageSources['skopeo'], { access, name, end }: WantedManifest, options: ToolOptions): Promise<string> {
  const isDigest = end.includes(':')
  const { stdout } = await skopeo([
    'inspect', '--raw', '--authfile', access.authFile, ...access.tlsVerify ? [] : ['--tls-verify=false'], `docker://${access.repository}${isDigest ? '@' : ':'}${end}`
  ], [access], options)
  if (isDigest && digestOf(stdout) !== end) throw new PullFailure('corrupt', `the manifest of ${name} is not what its digest ${end} promises`)
  return stdout
}
