// The contents of the image for builds: Debian packages and a few files of ours. The image's tag is a hash of all of it.
import { createHash } from 'node:crypto'
import { NEEDLESS } from '../../../core/library/debian/packages.ts'
import { ROOT_RECIPE } from '../../../core/library/debian/root.ts'

/** buildah with the runtime for its steps; netavark, without which Debian 13's buildah starts no step, even one without a network; and tools that unpack a source. */
export const PACKAGES = [
  'bash', 'buildah', 'bzip2', 'ca-certificates', 'coreutils', 'crun', 'findutils', 'grep', 'gzip', 'mount', 'netavark', 'netbase', 'sed', 'tar', 'util-linux', 'xz-utils', 'zstd'
] as const

/** Tested before the image is kept: every program that a build calls. */
export const PROGRAMS = ['buildah', 'crun', '/usr/lib/podman/netavark', 'bash', 'tar', 'gzip', 'bzip2', 'xz', 'zstd', 'mount', 'find', 'sed', 'grep', 'cp'] as const

/** Replaces the package containers-common, which is for machines with many users. Each build gets its own list of registries. */
export const CONFIGURATION: Readonly<Record<string, string>> = {
  'etc/containers/policy.json': '{"default":[{"type":"insecureAcceptAnything"}]}\n',
  'etc/containers/storage.conf': '[storage]\ndriver = "overlay"\ngraphroot = "/var/lib/containers/storage"\nrunroot = "/run/containers/storage"\n',
  'etc/containers/containers.conf': '[engine]\ncgroup_manager = "cgroupfs"\n'
}

export const REPOSITORY = 'berth/builder'

export function recipeHash (): string {
  return createHash('sha256').update(JSON.stringify([PACKAGES, CONFIGURATION, NEEDLESS, ROOT_RECIPE])).digest('hex').slice(0, 16)
}
