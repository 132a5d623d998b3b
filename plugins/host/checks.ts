// The checks of this host, from where the server stands: with its user, its data folder, its plugins.
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DiskShort } from '../../core/fs/disk-space.ts'
import { healthCheck } from '../../core/http/health.ts'
import { check, type Finding, type Look } from '../../core/library/host-checks/check.ts'
import { hostFindings, type HostPlace } from '../../core/library/host-checks/host.ts'
import { programEnvironment } from '../../core/process/environment.ts'
import type { Deps } from './manifest.ts'

const SYSTEM_CONFIGURATION = '/etc/berth/berth.yaml'

/** What one look has found. */
export interface Looked {
  /** ms since the epoch */
  readonly at: number
  readonly tookMs: number
  readonly findings: readonly Finding[]
}

export interface ChecksOptions extends Pick<Deps, 'database' | 'disk' | 'plugins'> {
  readonly dataDir: string
  /** how long findings are given again */
  readonly keptMs: number
}

/** One look at a time, and at most one in `keptMs`: a look starts programs. */
export class Checks {
  readonly #options: ChecksOptions
  readonly #place: Required<HostPlace>
  readonly #databaseAnswers: () => Promise<void>
  #looking: Promise<Looked> | undefined
  #last: { readonly looked: Looked, readonly until: number } | undefined

  constructor (options: ChecksOptions) {
    const { dataDir, database } = options
    this.#options = options
    this.#databaseAnswers = healthCheck(database)
    this.#place = {
      path: programEnvironment()['PATH'] ?? '',
      dataFolder: dataDir,
      scratch: join(dataDir, 'host'),
      keyFiles: [join(dataDir, 'keys/admin.key'), join(dataDir, 'keys/secrets.key'), SYSTEM_CONFIGURATION]
    }
  }

  /** Nothing in there outlives a look, but for one that was killed. */
  async open (): Promise<void> {
    await rm(this.#place.scratch, { recursive: true, force: true })
    await mkdir(this.#place.scratch, { mode: 0o700 })
  }

  async findings (): Promise<Looked> {
    if (this.#last !== undefined && performance.now() < this.#last.until) return this.#last.looked
    this.#looking ??= this.#look().finally(() => { this.#looking = undefined })
    return await this.#looking
  }

  /** Waits for a look that is under way. */
  async close (): Promise<void> {
    await this.#looking
    await rm(this.#place.scratch, { recursive: true, force: true })
  }

  async #look (): Promise<Looked> {
    const began = performance.now()
    const findings = await hostFindings(this.#place, this.#own())
    const looked = { at: Date.now(), tookMs: Math.round(performance.now() - began), findings }
    this.#last = { looked, until: performance.now() + this.#options.keptMs }
    return looked
  }

  /** Whether ports are free is no question here: the server has its own, and a plugin without one says so. */
  #own (): ReadonlyArray<Promise<Finding>> {
    return [check('room', async () => await this.#room()), check('database', async () => await this.#database()), check('plugins', async () => await Promise.resolve(this.#plugins()))]
  }

  async #room (): Promise<Look> {
    try {
      await this.#options.disk.check()
      return { verdict: 'ok', found: 'more is free on the disk of the data folder than must stay free' }
    } catch (error) {
      if (!(error instanceof DiskShort)) throw error
      return { verdict: 'failed', found: error.message, remedy: 'delete what is not needed, or enlarge the disk; what must stay free is server.minFree and server.minFreeInodes' }
    }
  }

  async #database (): Promise<Look> {
    return await this.#databaseAnswers().then(
      () => ({ verdict: 'ok', found: 'answers' }),
      (error: unknown) => ({ verdict: 'failed', found: error instanceof Error ? error.message : String(error), remedy: 'see the log; a full disk, or a database on another host that is not reached' }))
  }

  #plugins (): Look {
    const all = this.#options.plugins.list()
    const faults = all.filter(({ state }) => state === 'failed' || state === 'blocked')
    const skipped = all.filter(({ state }) => state === 'skipped').map(({ id }) => id)
    // Whatever host it is, some drivers are for another one.
    if (faults.length === 0) return { verdict: 'ok', found: `${all.filter(({ state }) => state === 'started').length} have started${skipped.length === 0 ? '' : `; not for this host or configuration: ${skipped.join(', ')}`}` }
    return {
      verdict: 'failed',
      found: faults.map(({ id, state, reason }) => `${id} ${state}${reason === undefined ? '' : `: ${reason}`}`).join('; '),
      remedy: 'do what each says; one that is not wanted is turned off by plugins.NAME.enabled: false'
    }
  }
}
