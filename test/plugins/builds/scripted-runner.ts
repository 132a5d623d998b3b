// A runner whose builds do what the test says, when it says so.
import { createHash } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import type { BuildJob, BuildOutcome, BuildProgress, BuildRunner } from '../../../plugins/builds/run.ts'

/** One build that is under way. */
export class ScriptedRun {
  readonly job: BuildJob
  readonly progress: BuildProgress
  readonly signal: AbortSignal
  readonly result: Promise<BuildOutcome>
  /** what the removal of the VM waits for */
  removal: Promise<void> = Promise.resolve()
  #resolve = (_outcome: BuildOutcome): void => {}
  #reject = (_error: unknown): void => {}

  constructor (job: BuildJob, progress: BuildProgress, signal: AbortSignal) {
    this.job = job
    this.progress = progress
    this.signal = signal
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    signal.addEventListener('abort', () => { this.#reject(signal.reason) }, { once: true })
    if (signal.aborted) this.#reject(signal.reason)
  }

  finish (): void { this.#resolve(outcomeOf(this.job)) }
  fail (error: unknown): void { this.#reject(error) }
}

export class ScriptedRunner implements BuildRunner {
  readonly runs = new Map<string, ScriptedRun>()
  /** ids in the order in which they began */
  readonly order: string[] = []
  readonly cleaned: string[] = []
  /** what a build does by itself as it begins */
  onRun: (run: ScriptedRun) => void | Promise<void> = () => {}
  onClean: (id: string) => void | Promise<void> = () => {}
  active = 0
  most = 0
  readonly #begun = new EventEmitter().setMaxListeners(0)

  async run (job: BuildJob, progress: BuildProgress, signal: AbortSignal): Promise<BuildOutcome> {
    const run = new ScriptedRun(job, progress, signal)
    this.runs.set(job.id, run)
    this.order.push(job.id)
    this.active++
    this.most = Math.max(this.most, this.active)
    this.#begun.emit('begun')
    try {
      await Promise.race([this.onRun(run), run.result.catch(() => {})])
      return await run.result
    } finally {
      await run.removal
      this.active--
    }
  }

  async clean (buildId: string): Promise<void> {
    this.cleaned.push(buildId)
    await this.onClean(buildId)
  }

  async remains (): Promise<readonly string[]> { return [] }

  async prepare (): Promise<void> {}

  /** The build, once it is under way. */
  async begun (id: string): Promise<ScriptedRun> {
    for (;;) {
      const run = this.runs.get(id)
      if (run !== undefined) return run
      await once(this.#begun, 'begun')
    }
  }
}

export function digestOf (id: string): string {
  return `sha256:${createHash('sha256').update(id).digest('hex')}`
}

export function outcomeOf ({ id, imageName, baseImageDigest }: Pick<BuildJob, 'id' | 'imageName' | 'baseImageDigest'>): BuildOutcome {
  return {
    imageRef: `localhost/${imageName ?? `builds/${id}`}:latest`,
    digest: digestOf(id),
    provenance: {
      baseImageDigest,
      sourceHash: createHash('sha256').update('source').digest('hex'),
      lockfileHashes: { 'package-lock.json': createHash('sha256').update('lock').digest('hex') },
      builder: 'buildah',
      builderVersion: '1.28.2',
      timestamp: new Date(Date.UTC(2026, 0, 31))
    }
  }
}
