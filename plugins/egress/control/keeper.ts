// Stays in touch with the proxy for as long as it is needed: starts it, notices at once when it ends, and starts it again.
import type { Socket } from 'node:net'
import type { Logger } from '../../../core/contracts/services.ts'
import { BerthError } from '../../../core/errors/define.ts'
import { EgressUnavailable } from '../errors.ts'
import type { ProxyProcess } from '../process/proxy-process.ts'
import type { ControlClient } from './client.ts'

export interface KeeperOptions {
  readonly proxy: ProxyProcess
  readonly client: ControlClient
  readonly log: Logger
  /** The proxy answers, and enforces this revision; `null`: it has none. */
  readonly onUp: (revision: number | null) => void
  readonly onDown: () => void
  /** From time to time while it is up. */
  readonly onCheck: () => Promise<void>
}

/** number of starts in a row without a pause: somebody who can end the proxy must not be able to keep it away from all others */
const AT_ONCE = 5
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 10_000
/** A proxy that did start is started again within a second, however often it ends: the pause must not outlast the cause of its end. */
const MOST_FAILURES_OF_STARTED = AT_ONCE + 4
/** a proxy that ends sooner counts as failing for the same cause as before */
const SETTLED_MS = 5_000
/** Interval for checks of what has no event: the host's addresses, which no guest may reach, and the size of a log. */
const CHECK_MS = 30_000

/** what a caller waits longer than a start may take: one that fails says why, first */
const AFTER_START_MS = 5000
/** number of times in a row that it takes a connection and does not answer, after which it counts as hanging */
const HANGING = 3

interface Waiter { resolve (): void, reject (error: unknown): void }

export class Keeper {
  readonly #options: KeeperOptions
  readonly #closing = new AbortController()
  readonly #waiters = new Set<Waiter>()
  #running: Promise<void> | undefined
  #link: Socket | undefined
  #failures = 0
  /** whether the last attempt got as far as a proxy that should answer */
  #hasStarted = false
  #silences = 0
  #said = ''
  #wake: () => void = () => {}

  constructor (options: KeeperOptions) {
    this.#options = options
  }

  get isUp (): boolean {
    return this.#link !== undefined && !this.#link.destroyed
  }

  /** Whether the last attempt to reach it failed, or none was made: it is unknown when it will be there. */
  get isFailing (): boolean {
    return !this.isUp && (this.#failures > 0 || this.#running === undefined)
  }

  /** From now on the proxy is wanted. Idempotent. */
  start (): void {
    if (!this.#closing.signal.aborted) this.#running ??= this.#run()
  }

  /** A request got no answer: checks again whether the proxy answers at all. */
  doubt (): void {
    this.#link?.destroy()
  }

  /** Resolves once the proxy answers. @throws egress_unavailable when the next attempt to reach or start it fails */
  async ready (): Promise<void> {
    if (this.#closing.signal.aborted) throw EgressUnavailable('the server is stopping')
    if (this.isUp) return
    let timer: NodeJS.Timeout | undefined
    const waitMs = this.#options.proxy.startMs + AFTER_START_MS
    const up = new Promise<void>((resolve, reject) => {
      const waiter = { resolve, reject }
      this.#waiters.add(waiter)
      timer = setTimeout(() => {
        this.#waiters.delete(waiter)
        reject(EgressUnavailable(`it did not answer within ${waitMs} ms`))
      }, waitMs)
    })
    this.start()
    this.#wake()
    await up.finally(() => clearTimeout(timer))
  }

  /** Ends the care for the proxy, without ending the proxy. */
  async close (): Promise<void> {
    this.#closing.abort(EgressUnavailable('the server is stopping'))
    this.#wake()
    this.#link?.destroy()
    await this.#running
    this.#settle((waiter) => waiter.reject(EgressUnavailable('the server is stopping')))
  }

  async #run (): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      try {
        await this.#hold(signal)
      } catch (error) {
        if (signal.aborted) return
        this.#fail(error)
      }
      if (this.#failures > AT_ONCE && !signal.aborted) await this.#pause(Math.min(FIRST_PAUSE_MS * 2 ** (this.#failures - AT_ONCE - 1), LONGEST_PAUSE_MS))
    }
  }

  /** Keeps one connection, from its start to its end. */
  async #hold (signal: AbortSignal): Promise<void> {
    const { proxy, client, log, onUp, onDown } = this.#options
    this.#hasStarted = false
    await proxy.ensure(signal)
    this.#hasStarted = true
    const link = await client.connect()
    // Not `once` of node:events, which takes a reset for a failure.
    const closed = new Promise<void>((resolve) => { if (link.closed) resolve(); else link.once('close', () => { resolve() }) })
    const began = performance.now()
    try {
      const { revision } = await this.#stateOf(client)
      signal.throwIfAborted()
      this.#link = link
      if (this.#said !== '') log.info('the egress proxy answers again')
      this.#said = ''
      onUp(revision)
      this.#settle((waiter) => waiter.resolve())
      const checks = setInterval(() => { void this.#check(link) }, CHECK_MS)
      await closed.finally(() => clearInterval(checks))
      onDown()
    } finally {
      this.#link = undefined
      link.destroy()
    }
    this.#failures = performance.now() - began < SETTLED_MS ? this.#oneMore() : 0
  }

  async #stateOf (client: ControlClient): ReturnType<ControlClient['state']> {
    try {
      const state = await client.state()
      this.#silences = 0
      return state
    } catch (error) {
      if (isTimeout(error) && ++this.#silences >= HANGING) {
        this.#silences = 0
        this.#options.log.error('the egress proxy hangs and is ended')
        await this.#options.proxy.stop()
      }
      throw error
    }
  }

  /** A proxy that is no longer as it should be is ended, and so replaced. */
  async #check (link: Socket): Promise<void> {
    try {
      await this.#options.onCheck()
      if (!await this.#options.proxy.isFit()) link.destroy()
    } catch (error) {
      this.#options.log.error({ err: error }, 'looking after the egress proxy failed')
    }
  }

  #fail (error: unknown): void {
    const reason = reasonOf(error)
    this.#failures = this.#oneMore()
    // It is retried again and again: one line in the log is enough.
    if (this.#said !== reason) this.#options.log.error({ err: error }, 'the egress proxy is not available; VMs with an egress policy have no way out over ports 80 and 443')
    this.#said = reason
    this.#settle((waiter) => waiter.reject(error instanceof BerthError ? error : EgressUnavailable.from(error, reason)))
  }

  #oneMore (): number {
    return this.#hasStarted ? Math.min(this.#failures + 1, MOST_FAILURES_OF_STARTED) : this.#failures + 1
  }

  #settle (how: (waiter: Waiter) => void): void {
    const waiters = [...this.#waiters]
    this.#waiters.clear()
    for (const waiter of waiters) how(waiter)
  }

  async #pause (ms: number): Promise<void> {
    // Callers wait already: they should not wait longer than for a first attempt.
    if (this.#waiters.size > 0) ms = FIRST_PAUSE_MS
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      timer = setTimeout(resolve, ms)
    })
    clearTimeout(timer)
    this.#wake = () => {}
  }
}

function isTimeout (error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError')
}

function reasonOf (error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
