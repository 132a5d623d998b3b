// The command lines of buildah for a build and its push.
import type { BuildJob } from '../run.ts'
import { BUILT, DIGEST_FILE, SOURCE, TEMPORARY } from './guest-paths.ts'

export interface BuildPlan {
  readonly job: Pick<BuildJob, 'buildArgs' | 'target' | 'noCache' | 'readsRegistry' | 'cacheVolumeId'>
  /** in the guest */
  readonly dockerfile: string
  /** path in the guest by id */
  readonly secrets: ReadonlyMap<string, string>
  readonly cacheFrom?: string
  readonly cacheTo?: string
  /** whether the base images are already pulled and checked */
  readonly hasBases: boolean
  /** `path-in-guest:path-in-step` */
  readonly volumes: readonly string[]
  /** path in the guest of the program that starts the containers of steps */
  readonly runtime: string
}

/** Environment of each of them. */
export const BUILDAH_ENVIRONMENT: Readonly<Record<string, string>> = { TMPDIR: TEMPORARY, HOME: '/root' }

export function buildArguments (plan: BuildPlan): string[] {
  const { job, dockerfile, secrets, cacheFrom, cacheTo, hasBases, volumes, runtime } = plan
  return [
    'buildah', 'build',
    // Docker's own format: the OCI format has no field for SHELL, HEALTHCHECK and ONBUILD.
    '--format=docker', '--layers', '--force-rm', '--identity-label=false',
    // The VM isolates the whole build. A step gets the VM's network.
    '--isolation=oci', '--network=host',
    `--runtime=${runtime}`,
    `--pull=${hasBases ? 'false' : pullPolicy(job)}`,
    `--file=${dockerfile}`, `--tag=${BUILT}`,
    ...Object.entries(job.buildArgs).map(([name, value]) => `--build-arg=${name}=${value}`),
    ...job.target === undefined ? [] : [`--target=${job.target}`],
    ...job.noCache ? ['--no-cache'] : [],
    ...[...secrets].map(([id, path]) => `--secret=id=${id},src=${path}`),
    ...volumes.map((volume) => `--volume=${volume}:ro`),
    ...cacheFrom === undefined ? [] : [`--cache-from=${cacheFrom}`],
    ...cacheTo === undefined ? [] : [`--cache-to=${cacheTo}`],
    SOURCE
  ]
}

/** A builder's disk may have private images of others' builds: whoever may not read those must not get them from there. Others use an older copy when the registry does not answer. */
function pullPolicy ({ readsRegistry, cacheVolumeId }: BuildPlan['job']): string {
  return readsRegistry || cacheVolumeId === undefined ? 'true' : 'always'
}

/** @param to `host:port/repository:tag` */
export function pushArguments (to: string): string[] {
  return ['buildah', 'push', `--digestfile=${DIGEST_FILE}`, '--compression-format=gzip', '--compression-level=1', BUILT, `docker://${to}`]
}

export function pullArguments (image: string): string[] {
  return ['buildah', 'pull', '--policy=always', '--quiet', image]
}
