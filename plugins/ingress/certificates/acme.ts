// Certificates from an ACME authority: requested in the background, one after the other, with growing pauses after failures. A file keeps the attempts, so that restarts do not cause more requests.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { JobQueue, Logger } from '../../../core/contracts/services.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { writeFileDurably } from '../../../core/fs/durable.ts'
import { OneAtATime } from '../../../core/jobs/one-at-a-time.ts'
import type { Pair } from './authority.ts'
import { dueAt, installedOf, textOf } from './installed.ts'
import type { Lego } from './lego.ts'

export interface AcmeOptions {
  readonly lego: Lego
  readonly queue: JobQueue
  /** of the server alone */
  readonly folder: string
  /** the authority and the kind of challenge: after a change, certificates are requested at once */
  readonly source: string
  readonly challenge: 'http-01' | 'dns-01'
  readonly hosts: readonly string[]
  readonly log: Logger
  /** a certificate was issued, or refused */
  readonly onOutcome: (outcome: 'issued' | 'refused') => void
  readonly firstPauseMs?: number
}

/** Well below the failures that authorities allow. */
const FIRST_PAUSE_MS = 60_000
const LONGEST_PAUSE_MS = 12 * 3_600_000
/** of hosts that are not served now */
const MOST_UNUSED = 256
const CUT_OFF = 'the server ended while it was asked for'

const Tries = Type.Record(Type.String(), Type.Object({ source: Type.String(), failures: Type.Integer(), nextAt: Type.Number(), reason: Type.String() }))
interface Try { readonly source: string, readonly failures: number, readonly nextAt: number, readonly reason: string }

export class Acme {
  readonly #options: AcmeOptions
  readonly #tries = new Map<string, Try>()
  readonly #asking = new Set<string>()
  #isStarted = false
  #isClosed = false
  readonly #saves = new OneAtATime()

  constructor (options: AcmeOptions) {
    this.#options = options
  }

  get source (): string { return this.#options.source }

  /** Whether this host gets its certificate from the authority. */
  takes (host: string): boolean {
    const { hosts } = this.#options
    return hosts.length === 0 || hosts.some((each) => each === host || (each.startsWith('*.') && host.endsWith(each.slice(1))))
  }

  /** From now on nginx serves the answers to challenges. */
  async start (): Promise<void> {
    for (const [host, each] of Object.entries(await this.#readTries())) if (each.source === this.#options.source) this.#tries.set(host, each)
    this.#isStarted = true
  }

  async close (): Promise<void> {
    this.#isClosed = true
    await this.#options.queue.close()
    await this.#saves.idle()
  }

  /** The certificate that there is for a host, which may have come for an ingress that was deleted. One that is to be renewed already is none. */
  async ready (host: string): Promise<Pair | undefined> { return (await this.#usable(host))?.pair }

  async #usable (host: string): Promise<{ readonly host: string, readonly pair: Pair, readonly endsAt: number } | undefined> {
    const { lego, source } = this.#options
    const pair = await lego.pair(host)
    const made = pair === undefined ? undefined : installedOf(textOf(source, pair))
    return pair !== undefined && made !== undefined && Date.now() <= dueAt(made) ? { host, pair, endsAt: made.endsAt } : undefined
  }

  /** Requests one, unless that is under way or was refused a short time ago. Returns at once. */
  want (host: string): void {
    if (!this.#isStarted || this.#isClosed || this.#asking.has(host) || this.#wildcardProblem(host) !== undefined) return
    if ((this.#nextAt(host) ?? 0) > Date.now()) return
    this.#asking.add(host)
    this.#options.queue.push(host, async (signal) => { await this.#ask(host, signal) }).catch(() => {})
  }

  /** Why there is no certificate; undefined while no reason is known. */
  problemOf (host: string): string | undefined {
    const reason = this.#tries.get(host)?.reason
    // This text is stored for the next server, and does not apply while this server's request is under way.
    return this.#wildcardProblem(host) ?? (reason === CUT_OFF && this.#asking.has(host) ? undefined : reason)
  }

  /** The time of the next request, as epoch `ms`. */
  nextAt (host: string): number | undefined {
    return this.#asking.has(host) ? undefined : this.#nextAt(host)
  }

  /** No pause is longer than the longest: a later time was noted while the clock was ahead, and counts as now. */
  #nextAt (host: string): number | undefined {
    const nextAt = this.#tries.get(host)?.nextAt
    const now = Date.now()
    return nextAt !== undefined && nextAt - now > LONGEST_PAUSE_MS ? now : nextAt
  }

  /** Other hosts are no longer served. Their certificates are kept for when they are again, since authorities issue few of them a week: the latest, and none that is due. */
  async retainOnly (hosts: ReadonlySet<string>): Promise<void> {
    const gone = [...this.#tries.keys()].filter((host) => !hosts.has(host))
    for (const host of gone) this.#tries.delete(host)
    if (gone.length > 0) await this.#save()
    const { lego } = this.#options
    const inUse = new Set([...hosts, ...this.#asking])
    const others: { readonly host: string, readonly endsAt: number }[] = []
    for (const host of await lego.hosts()) {
      const other = inUse.has(host) ? undefined : await this.#usable(host)
      if (other !== undefined) others.push(other)
    }
    const latest = others.sort((a, b) => b.endsAt - a.endsAt).slice(0, MOST_UNUSED)
    await lego.retainOnly([...inUse, ...latest.map(({ host }) => host)])
  }

  #wildcardProblem (host: string): string | undefined {
    return host.startsWith('*.') && this.#options.challenge !== 'dns-01' ? 'one for all names takes the challenge dns-01 (plugins.ingress.config.certificates.acme.challenge)' : undefined
  }

  async #ask (host: string, signal: AbortSignal): Promise<void> {
    const { lego, log, source, onOutcome, firstPauseMs = FIRST_PAUSE_MS } = this.#options
    const failures = (this.#tries.get(host)?.failures ?? 0) + 1
    const failed = (reason: string): Try => ({ source, failures, nextAt: Date.now() + Math.min(firstPauseMs * 2 ** (failures - 1), LONGEST_PAUSE_MS), reason })
    try {
      await lego.waitForOthers(signal)
      // An earlier server may have got it, and ended before it was used.
      if (await this.ready(host) === undefined) {
        // Stored before the request: a server that is killed again and again does not request more often either.
        await this.#note(host, failed(CUT_OFF))
        await lego.obtain(host, signal)
        // Taken for issued, it would be asked for again at once, and again.
        if (await this.ready(host) === undefined) throw new Error('what came is no certificate that holds for a while by this host\'s clock')
      }
      await this.#note(host, undefined)
      log.info({ host }, 'a certificate was issued')
      this.#asking.delete(host)
      onOutcome('issued')
    } catch (error) {
      if (this.#isClosed) return
      const reason = error instanceof Error ? error.message : String(error)
      const next = failed(reason)
      // Not before: the queue would take a request that comes meanwhile for this one.
      await this.#note(host, next).finally(() => { this.#asking.delete(host) })
      log.warn({ err: error, host, failures, next: new Date(next.nextAt) }, 'a certificate was not issued')
      onOutcome('refused')
    }
  }

  async #note (host: string, what: Try | undefined): Promise<void> {
    if (what === undefined) this.#tries.delete(host)
    else this.#tries.set(host, what)
    await this.#save()
  }

  async #save (): Promise<void> {
    await this.#saves.run(async () => { await writeFileDurably(this.#file, JSON.stringify(Object.fromEntries(this.#tries)), 0o600) })
  }

  async #readTries (): Promise<Record<string, Try>> {
    try {
      const tries: unknown = JSON.parse(await readFile(this.#file, 'utf8'))
      return Value.Check(Tries, tries) ? tries : {}
    } catch (error) {
      if (hasCode(error, 'ENOENT') || error instanceof SyntaxError) return {}
      throw error
    }
  }

  get #file (): string { return join(this.#options.folder, 'tries.json') }
}
