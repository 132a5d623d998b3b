// The certificates that nginx serves: one file with key and chain for each host, made before it is needed and renewed before it ends.
import { chown, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { randomBytes, X509Certificate } from 'node:crypto'
import type { Logger } from '../../../core/contracts/services.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { renameDurably, writeFileDurably } from '../../../core/fs/durable.ts'
import type { IngressRecord } from '../record.ts'
import type { Pair } from './authority.ts'
import { openHostsMap, subjectOf, subjectsOf, type Subject } from './names.ts'

export interface CertificatesOptions {
  readonly folder: string
  readonly openHosts: string
  /** of nginx */
  readonly uid: number
  /** who makes one. @throws Error that says why it cannot be had now */
  readonly issue: (host: string) => Promise<Pair>
  readonly log: Logger
  /** the names of open hosts have changed */
  readonly onOpenHosts: () => Promise<void>
}

interface Held { readonly expiresAt: number, readonly issuer: string }

const CHECK_MS = 3_600_000
const RETRY_MS = 60_000
/** A certificate is renewed when a third of its time is left, and so is one that has no such date. */
const LEFT = 1 / 3

export class Certificates {
  readonly #options: CertificatesOptions
  readonly #held = new Map<string, Held>()
  readonly #problems = new Map<string, string>()
  #records: readonly IngressRecord[] = []
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  #work: Promise<void> = Promise.resolve()

  constructor (options: CertificatesOptions) {
    this.#options = options
  }

  /** What these need is there when it returns, or the reason why not is known. */
  async keep (records: readonly IngressRecord[]): Promise<void> {
    this.#records = records
    const work = this.#work.then(async () => { await this.#settle() })
    this.#work = work.catch((error: unknown) => { this.#options.log.error({ err: error }, 'the certificates of ingresses could not be looked after') })
    await work
  }

  /** Why a host cannot be served with TLS. */
  problemOf (hostname: string): string | undefined {
    const { name, host } = subjectOf(hostname)
    if (this.#held.has(name)) return undefined
    return `there is no certificate for ${host}: ${this.#problems.get(name) ?? 'it is being made'}`
  }

  /** Until when and by whom; undefined while there is none. */
  heldFor (hostname: string): Held | undefined {
    return this.#held.get(subjectOf(hostname).name)
  }

  async close (): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#work
  }

  async #settle (): Promise<void> {
    const subjects = subjectsOf(this.#records)
    for (const subject of subjects) await this.#ensure(subject)
    await this.#writeOpenHosts(subjects)
    const wanted = new Set(subjects.map(({ name }) => `${name}.pem`))
    for (const file of await readdir(this.#options.folder)) if (!wanted.has(file)) await rm(join(this.#options.folder, file), { force: true })
    for (const name of [...this.#held.keys(), ...this.#problems.keys()]) {
      if (wanted.has(`${name}.pem`)) continue
      this.#held.delete(name)
      this.#problems.delete(name)
    }
    clearTimeout(this.#timer)
    if (!this.#isClosed) this.#timer = setTimeout(() => { void this.keep(this.#records).catch(() => {}) }, this.#problems.size > 0 ? RETRY_MS : CHECK_MS).unref()
  }

  async #ensure (subject: Subject): Promise<void> {
    const { folder, log, issue, uid } = this.#options
    const path = join(folder, `${subject.name}.pem`)
    const there = await readIfThere(path)
    const known = there === undefined ? undefined : heldOf(there)
    if (known !== undefined && known.expiresAt > Date.now()) this.#held.set(subject.name, known)
    else this.#held.delete(subject.name)
    if (known !== undefined && !isDue(there ?? '')) return
    try {
      const { certificate, key } = await issue(subject.host)
      const made = heldOf(certificate)
      if (made === undefined) throw new Error('what was issued is no certificate')
      await writeFor(uid, path, `${certificate}${certificate.endsWith('\n') ? '' : '\n'}${key}`)
      this.#held.set(subject.name, made)
      this.#problems.delete(subject.name)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      this.#problems.set(subject.name, reason)
      log.error({ err: error, host: subject.host }, 'a certificate could not be had')
    }
  }

  async #writeOpenHosts (subjects: readonly Subject[]): Promise<void> {
    const { openHosts, onOpenHosts } = this.#options
    const text = openHostsMap(subjects)
    if (await readIfThere(openHosts) === text) return
    await writeFileDurably(openHosts, text)
    await onOpenHosts()
  }
}

/** Nobody but that user may read it, from its first moment. */
async function writeFor (uid: number, path: string, text: string): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`
  try {
    await writeFileDurably(temporary, text, 0o600)
    await chown(temporary, uid, uid)
    await renameDurably(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

function heldOf (pem: string): Held | undefined {
  try {
    const { validTo, issuer } = new X509Certificate(pem)
    return { expiresAt: Date.parse(validTo), issuer: issuer.split('\n').join(', ') }
  } catch {
    return undefined
  }
}

function isDue (pem: string): boolean {
  const { validFrom, validTo } = new X509Certificate(pem)
  const [from, to] = [Date.parse(validFrom), Date.parse(validTo)]
  return Date.now() > to - (to - from) * LEFT
}

async function readIfThere (path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}
