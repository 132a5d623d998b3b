// Runs one build when its turn has come, from `building` to its end.
import { BerthError } from '../../../core/errors/define.ts'
import type { Context } from '../context.ts'
import { BuildFailed } from '../errors.ts'
import { lastOutput } from '../events/log-reader.ts'
import type { LiveBuild } from '../live-build.ts'
import type { BuildEnd, BuildOrder } from '../record.ts'
import type { BuildJob, BuildProgress } from '../run.ts'
import { cleanLater } from './clean.ts'
import { finish } from './finish.ts'

/** lines of output in an error */
const SHOWN_LINES = 10
const MIB = 2 ** 20

/** The build was ended from outside, with the reason. */
export class Ended extends Error {
  override readonly name = 'Ended'
  readonly status: 'cancelled' | 'failed'

  constructor (status: 'cancelled' | 'failed', message: string) {
    super(message)
    this.status = status
  }
}

/** Never rejects: a failure is the end of the build. */
export async function run (context: Context, build: LiveBuild): Promise<void> {
  const { controller, id } = build
  let timer: NodeJS.Timeout | undefined
  let end: BuildEnd
  try {
    await context.repository.setStarted(id, context.clock.now())
    build.log.status('building')
    const order = await context.files.readOrder(id)
    timer = setTimeout(() => { controller.abort(new Ended('failed', `the build took longer than ${order.timeoutSeconds} s`)) }, order.timeoutSeconds * 1000)
    controller.signal.throwIfAborted()
    const job = await jobOf(context, build, order)
    // After the secrets were read: those that are put there once the key has ended are none of them.
    await requireKey(context, order)
    const outcome = await context.runner.run(job, progressOf(context, build), controller.signal)
    await context.repository.setOutcome(id, outcome)
    end = { status: 'ready' }
  } catch (error) {
    end = await endOf(context, build, error)
  } finally {
    clearTimeout(timer)
  }
  await finish(context, build, end)
}

async function jobOf ({ files, secrets, builders, clock }: Context, { id, builderId }: LiveBuild, order: BuildOrder): Promise<BuildJob> {
  const builder = builderId === null ? undefined : await builders.find(builderId)
  if (builderId !== null && builder?.status !== 'ready') throw BuildFailed(`builder ${builderId} has no cache disk`)
  if (builder !== undefined) await builders.setUsed(builder.id, clock.now())
  return {
    id,
    sourcePath: files.of(id).source,
    dockerfile: order.dockerfile,
    dockerfilePath: order.dockerfilePath,
    buildArgs: order.buildArgs,
    target: order.target,
    noCache: order.noCache,
    secrets: await secrets.read(order.secretIds),
    cacheScope: order.cacheScope,
    globalCacheKey: order.globalCacheKey,
    writesGlobalCache: order.writesGlobalCache,
    baseImageDigest: order.baseImageDigest,
    imageName: order.imageName,
    readsRegistry: order.readsRegistry,
    vcpus: order.vcpus,
    memoryBytes: order.memoryMb * MIB,
    network: order.network,
    cacheVolumeId: builder?.volumeId
  }
}

/** Rights are in the order, which outlives the key. @throws build_failed */
async function requireKey ({ apiKeys }: Context, { keyId }: BuildOrder): Promise<void> {
  if (keyId !== undefined && await apiKeys.current(keyId) === undefined) throw BuildFailed('the key that asked for it has ended')
}

function progressOf (context: Context, { id, log }: LiveBuild): BuildProgress {
  const { repository } = context
  return {
    log: (line) => { log.line(line) },
    instance: async (instanceId) => { await repository.setInstance(id, instanceId) },
    async pushing () {
      await repository.setPushing(id)
      log.status('pushing')
    },
    pushed: async (outcome) => { await repository.setOutcome(id, outcome) },
    left: () => { cleanLater(context, id) }
  }
}

async function endOf (context: Context, { id, controller, log }: LiveBuild, error: unknown): Promise<BuildEnd> {
  const reason: unknown = controller.signal.reason
  if (reason instanceof Ended) {
    if (error !== reason) context.log.debug({ err: error, build: id }, 'a build that was ended also failed')
    if (reason.status === 'cancelled') return { status: 'cancelled' }
    await log.flush()
    return { status: 'failed', error: await withLastLines(context, id, reason.message) }
  }
  if (error instanceof BerthError && error.kind !== 'internal') return { status: 'failed', error: error.message }
  context.log.error({ err: error, build: id }, 'a build failed by the server\'s fault')
  return { status: 'failed', error: `the server failed to do this build; its log has the cause under build ${id}` }
}

/** A sentence, and the build's last output. */
export async function withLastLines ({ files }: Context, id: string, message: string): Promise<string> {
  const lines = await lastOutput(files.of(id).log, SHOWN_LINES)
  return lines.length === 0 ? message : `${message}; its last lines:\n${lines.join('\n')}`
}
