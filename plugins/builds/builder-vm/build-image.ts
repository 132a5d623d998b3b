// Runs buildah in the VM: the build itself, and the push of its image.
import type { EventBus } from '../../../core/contracts/services.ts'
import type { GuestLink } from '../../guest/contract.ts'
import { BuildFailed } from '../errors.ts'
import type { BuildJob } from '../run.ts'
import type { BuildLog } from './build-log.ts'
import { BUILDAH_ENVIRONMENT, buildArguments, pushArguments, type BuildPlan } from './buildah-arguments.ts'
import { describeFailure } from './failure.ts'
import { outputOf, runInGuest } from './guest-command.ts'
import { DIGEST_FILE } from './guest-paths.ts'
import type { ImageTarget } from './image-target.ts'
import { oomKills } from './memory.ts'
import { watchPushes } from './pushes.ts'

/** Limit on a command's arguments, which must fit into one message to the guest. */
const MAX_ARGUMENT_BYTES = 60_000

export interface Work {
  readonly link: GuestLink
  readonly job: BuildJob
  readonly log: BuildLog
  readonly signal: AbortSignal
}

/** @throws build_failed */
export async function buildImage (work: Work, plan: BuildPlan): Promise<void> {
  await runBuildah(work, 'the build', buildArguments(plan))
}

/** @param host under which the guest knows the built-in registry. @returns the digest, which the registry has confirmed */
export async function pushImage (work: Work, events: EventBus, host: string, { repository, tag }: ImageTarget): Promise<string> {
  const watch = watchPushes(events, repository, tag)
  try {
    await runBuildah(work, 'the push to the built-in registry', pushArguments(`${host}/${repository}:${tag}`))
    const digest = (await outputOf(work.link, ['cat', DIGEST_FILE], work.signal)).trim()
    if (!watch.has(digest)) throw BuildFailed('the built-in registry has not received the image that the VM of the build says it has pushed')
    return digest
  } finally {
    watch.close()
  }
}

async function runBuildah ({ link, job, log, signal }: Work, action: string, argv: readonly string[]): Promise<void> {
  if (Buffer.byteLength(argv.join(' ')) > MAX_ARGUMENT_BYTES) throw BuildFailed(`build_args: they must have less than ${MAX_ARGUMENT_BYTES} bytes together`)
  const before = await oomKills(link, signal)
  const { exitCode } = await runInGuest(link, { argv, env: BUILDAH_ENVIRONMENT, output: (chunk) => log.push(chunk), signal })
  log.end()
  if (exitCode === 0) return
  throw BuildFailed(describeFailure(action, {
    exitCode,
    last: log.last(),
    memoryBytes: job.memoryBytes,
    oomKills: await oomKills(link, signal) - before,
    isIsolated: job.network.mode === 'isolated',
    readsRegistry: job.readsRegistry
  }))
}
