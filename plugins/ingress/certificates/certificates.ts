// The certificates that nginx serves: one file with key and chain for each host, made before it is needed and renewed in time. The operator's files come first, then the ACME authority, then our own.
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from '../../../core/contracts/services.ts'
import { writeFileDurably } from '../../../core/fs/durable.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import { readIfThere } from '../../../core/fs/read-if-there.ts'
import { OneAtATime } from '../../../core/jobs/one-at-a-time.ts'
import { believableClock } from '../../../core/steady-clock.ts'
import type { IngressRecord } from '../record.ts'
import type { Acme } from './acme.ts'
import type { Pair } from './authority.ts'
import { dueAt, install, installedOf, readInstalled, textOf, type Installed } from './installed.ts'
import { openHostsMap, subjectOf, subjectsOf, type Subject } from './names.ts'
import type { OwnFiles } from './own-files.ts'

export interface CertificatesOptions {
  readonly folder: string
  readonly openHosts: string
  /** of nginx */
  readonly uid: number
  /** by the own authority. @throws Error that says why it is impossible now */
  readonly issue: (host: string) => Promise<Pair>
  readonly files: OwnFiles
  /** undefined: no ACME authority is configured */
  readonly acme: Acme | undefined
  readonly log: Logger
  /** The names of open hosts have changed; whether nginx uses them now. */
  readonly onOpenHosts: () => Promise<boolean>
}

/** The certificate of one host, with its problem. */
export interface CertificateState {
  /** in the form of certificates: `*.example.com` for a wildcard */
  readonly host: string
  readonly source: 'files' | 'acme' | 'own'
  /** the certificate that is served */
  readonly installed: Installed | undefined
  readonly problem: string | undefined
  /** time of the next request, as epoch `ms` */
  readonly nextAt: number | undefined
}

const CHECK_MS = 3_600_000
const RETRY_MS = 60_000
const SOONEST_MS = 1000

export class Certificates {
  readonly #options: CertificatesOptions
  readonly #held = new Map<string, Installed>()
  readonly #problems = new Map<string, string>()
  #records: readonly IngressRecord[] = []
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  readonly #turns = new OneAtATime()
  readonly #isClockBelievable = believableClock()

  constructor (options: CertificatesOptions) {
    this.#options = options
  }

  /** @throws UnusablePair: a configured file cannot be used */
  async open (): Promise<void> {
    await this.#options.files.open(() => { this.look() })
  }

  /** nginx runs: from now on certificates can be requested from an ACME authority. */
  async start (): Promise<void> {
    await this.#options.acme?.start()
    this.look()
  }

  /** Checks in the background whether anything is to be done. */
  look (): void {
    if (!this.#isClosed) void this.keep(this.#records).catch(() => {})
  }

  /** When it returns, the certificates that come from files and the own authority exist, or the reason why not is known; certificates of an ACME authority are requested in the background. */
  async keep (records: readonly IngressRecord[]): Promise<void> {
    this.#records = records
    try {
      await this.#turns.run(async () => { await this.#settle() })
    } catch (error) {
      this.#options.log.error({ err: error }, 'the certificates of ingresses could not be looked after')
      throw error
    }
  }

  /** Why a host cannot be served with TLS. */
  problemOf (hostname: string): string | undefined {
    const { host, installed, problem } = this.stateOf(hostname)
    if (installed === undefined) return `there is no certificate for ${host}: ${problem ?? 'it is being made'}`
    const now = Date.now()
    if (installed.startsAt <= now && installed.endsAt > now) return undefined
    return `the certificate for ${host} ${installed.startsAt > now ? 'is not valid yet by this host\'s clock' : 'has ended'}${problem === undefined ? '' : `: ${problem}`}`
  }

  stateOf (hostname: string): CertificateState {
    const { acme } = this.#options
    const { name, host } = subjectOf(hostname)
    const source = this.#sourceOf(host)
    const isAcme = source === 'acme'
    return { host, source, installed: this.#held.get(name), problem: isAcme ? acme?.problemOf(host) : this.#problems.get(name), nextAt: isAcme ? acme?.nextAt(host) : undefined }
  }

  /** The certificates of an ingress' hosts, each once. */
  statesOf (record: IngressRecord): CertificateState[] {
    return subjectsOf([record]).map(({ host }) => this.stateOf(host))
  }

  /** The earliest expiry of all served certificates, as epoch `ms`. */
  get firstEnd (): number | undefined {
    const ends = [...this.#held.values()].map(({ endsAt }) => endsAt)
    return ends.length === 0 ? undefined : Math.min(...ends)
  }

  async close (): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#options.files.close()
    await this.#options.acme?.close()
    await this.#turns.idle()
  }

  async #settle (): Promise<void> {
    const { folder, acme } = this.#options
    // One time for the whole check: a certificate that becomes due in between would neither be renewed now nor be scheduled.
    const now = Date.now()
    const subjects = subjectsOf(this.#records)
    for (const subject of subjects) await this.#ensure(subject, now)
    await this.#writeOpenHosts(subjects)
    const wanted = new Set(subjects.map(({ name }) => `${name}.pem`))
    for (const file of await readdir(folder)) if (!wanted.has(file)) await rm(join(folder, file), { force: true })
    for (const name of [...this.#held.keys(), ...this.#problems.keys()]) {
      if (wanted.has(`${name}.pem`)) continue
      this.#held.delete(name)
      this.#problems.delete(name)
    }
    await acme?.retainOnly(new Set(subjects.map(({ host }) => host)))
    clearTimeout(this.#timer)
    if (!this.#isClosed) this.#timer = setTimeout(() => { this.look() }, this.#pauseMs(subjects, now)).unref()
  }

  #sourceOf (host: string): CertificateState['source'] {
    const { files, acme } = this.#options
    if (files.pairFor(host) !== undefined) return 'files'
    return acme?.takes(host) === true ? 'acme' : 'own'
  }

  /** Time until the next certificate is due, or may be requested again. */
  #pauseMs (subjects: readonly Subject[], now: number): number {
    const times = subjects.flatMap(({ name, host }) => {
      const held = this.#held.get(name)
      const next = this.#options.acme?.nextAt(host)
      return [...next === undefined ? [] : [next], ...held === undefined || dueAt(held) < now ? [] : [dueAt(held)]]
    })
    // A clock that was set may be set again, and what was made by it is of no use then.
    const isCalm = this.#problems.size === 0 && this.#isClockBelievable()
    return Math.max(SOONEST_MS, Math.min(isCalm ? CHECK_MS : RETRY_MS, ...times.map((time) => time - now)))
  }

  async #ensure (subject: Subject, now: number): Promise<void> {
    const { folder, log, uid } = this.#options
    const path = join(folder, `${subject.name}.pem`)
    try {
      const there = await readInstalled(path)
      if (there === undefined) this.#held.delete(subject.name)
      else this.#held.set(subject.name, there)
      const text = await this.#next(subject, there, now)
      this.#problems.delete(subject.name)
      if (text === undefined || text === there?.text) return
      const made = installedOf(text)
      if (made === undefined) throw new Error('what was issued is no certificate')
      await install(uid, path, text)
      this.#held.set(subject.name, made)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      this.#problems.set(subject.name, reason)
      log.error({ err: error, host: subject.host }, 'a certificate could not be had')
    }
  }

  /** The certificate to serve from now on; undefined: keep the current one for now. */
  async #next ({ host }: Subject, there: Installed | undefined, now: number): Promise<string | undefined> {
    const { files, acme, issue } = this.#options
    const own = files.pairFor(host)
    if (own !== undefined) return textOf('files', own)
    const isDue = (source: string): boolean => there?.source !== source || now > dueAt(there)
    // That of our own authority is valid from its issue on: the clock was ahead then. An ACME authority has a clock of its own.
    const isEarly = there !== undefined && there.startsAt > now
    if (acme?.takes(host) !== true) return isDue('own') || isEarly ? textOf('own', await issue(host)) : undefined
    if (!isDue(acme.source)) return undefined
    const ready = await acme.ready(host)
    if (ready !== undefined) return textOf(acme.source, ready)
    acme.want(host)
    return undefined
  }

  async #writeOpenHosts (subjects: readonly Subject[]): Promise<void> {
    const { openHosts, onOpenHosts } = this.#options
    const text = openHostsMap(subjects)
    // nginx outlives a server that is killed before it has told it, and the next one finds the names as they should be.
    const unread = `${openHosts}.unread`
    if (await readIfThere(openHosts) !== text) {
      await writeFileDurably(unread, '')
      await writeFileDurably(openHosts, text)
    } else if (!await isThere(unread)) return
    if (await onOpenHosts()) await rm(unread, { force: true })
  }
}
