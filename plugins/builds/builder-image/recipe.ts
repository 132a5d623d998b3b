// What the image of builders is made of: Debian packages and a few files of ours. The image's tag is a hash of all of it.
import { createHash } from 'node:crypto'
import { NEEDLESS } from '../../../core/library/debian/packages.ts'
import { ROOT_RECIPE } from '../../../core/library/debian/root.ts'

/** buildah with the runtime for its steps, netavark, without which Debian 13's begins no step, also one that needs no network, and what unpacks a source. */
export const PACKAGES = [
  'bash', 'buildah', 'bzip2', 'ca-certificates', 'coreutils', 'crun', 'findutils', 'grep', 'gzip', 'mount', 'netavark', 'netbase', 'sed', 'tar', 'util-linux', 'xz-utils', 'zstd'
] as const

/** What is tried before the image is kept: all that a build calls. */
export const PROGRAMS = ['buildah', 'crun', '/usr/lib/podman/netavark', 'bash', 'tar', 'gzip', 'bzip2', 'xz', 'zstd', 'mount', 'find', 'sed', 'grep', 'cp'] as const

/** Instead of the package containers-common, which is about a machine with many users. Which registries there are is told for each build. */
export const CONFIGURATION: Readonly<Record<string, string>> = {
  'etc/containers/policy.json': '{"default":[{"type":"insecureAcceptAnything"}]}\n',
  'etc/containers/storage.conf': '[storage]\ndriver = "overlay"\ngraphroot = "/var/lib/containers/storage"\nrunroot = "/run/containers/storage"\n',
  'etc/containers/containers.conf': '[engine]\ncgroup_manager = "cgroupfs"\n'
}

export const REPOSITORY = 'berth/builder'

export function recipeHash (): string {
  return createHash('sha256').update(JSON.stringify([PACKAGES, CONFIGURATION, NEEDLESS, ROOT_RECIPE])).digest('hex').slice(0, 16)
}
