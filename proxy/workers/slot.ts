// The place of one worker: it always has a process, or one that is starting, and connections wait for that.
import type { Log } from '../log/log.ts'
import type { WorkerChange, WorkerRevision } from '../vms/revision.ts'
import type { WorkerReport } from './contract.ts'
import type { Arrival, Ending, WorkerProcess } from './process.ts'
import type { Spare } from './spare.ts'

export interface SlotOptions {
  readonly name: string
  /** where processes come from */
  readonly spare: Spare
  readonly log: Log
  /** everything that this worker enforces; `undefined` before the first revision */
  readonly part: (slot: Slot) => WorkerRevision | undefined
  readonly onReport: (report: WorkerReport) => void
  /** A worker has ended without having been asked to. */
  readonly onEnd: (slot: Slot, ending: Ending) => void
  /** Whether the connection's VM still has its address and epoch. */
  readonly isWanted: (arrival: Arrival) => boolean
}

/** number of ends within a minute up to which a worker is started again at once */
const AT_ONCE = 5
const RECENT_MS = 60_000
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000

export class Slot {
  readonly name: string
  readonly #options: SlotOptions
  #process: WorkerProcess | undefined
  /** whether there was a first revision */
  #hasRevision = false
  #waiting: Arrival[] = []
  #isPassing = false
  #wasReady = false
  #isClosing = false
  #endedMs: number[] = []
  #restart: NodeJS.Timeout | undefined
  #gone: () => void = () => {}
  /** number of processes that ended without having been asked to */
  ends = 0
  lastReport: WorkerReport | undefined
  #stallSeconds = 0

  constructor (options: SlotOptions) {
    this.name = options.name
    this.#options = options
    this.#start()
  }

  get isUp (): boolean {
    return this.#process?.isReady === true
  }

  get pid (): number | undefined {
    return this.#process?.pid
  }

  /** number of connections that wait for the process */
  get waiting (): number {
    return this.#waiting.length
  }

  /** Resolves once the process enforces its part of the revision. A process that is not ready yet gets it before its first connection. */
  async enforce (): Promise<void> {
    await this.#tellAll()
    if (this.isUp) this.#options.spare.prepare()
  }

  /** The same for a difference from what it enforced before. A process that is not ready yet gets the whole revision. */
  async change (change: WorkerChange): Promise<void> {
    await this.#process?.change(change)
  }

  /** The longest time for which the worker's event loop was blocked since the last call. */
  takeStall (): number {
    const seconds = this.#stallSeconds
    this.#stallSeconds = 0
    return seconds
  }

  pass (arrival: Arrival): void {
    this.#waiting.push(arrival)
    this.#passNext()
  }

  /** The number of connections that wait for one VM. */
  waitingFor (vm: string): number {
    return this.#waiting.reduce((sum, arrival) => arrival.vm === vm ? sum + 1 : sum, 0)
  }

  /** Brings `lastReport` up to date. */
  async report (): Promise<void> {
    await this.#process?.report()
  }

  /** Resolves when the log lines of everything up to now are in the store. */
  async lines (): Promise<void> {
    await this.#process?.lines()
  }

  /** Lets running requests finish for this long, then ends the process. */
  async close (withinMs: number): Promise<void> {
    this.#isClosing = true
    clearTimeout(this.#restart)
    const process = this.#process
    if (process === undefined) return
    const gone = new Promise<void>(resolve => { this.#gone = resolve })
    while (this.#waiting.length > 0 && process.isReady) await new Promise(resolve => setTimeout(resolve, 5))
    process.drain()
    const timer = setTimeout(() => process.kill(), withinMs)
    await gone.finally(() => clearTimeout(timer))
  }

  #start (): void {
    const { spare } = this.#options
    this.#process = spare.take({ ready: () => this.#ready(), reported: report => this.#reported(report), ended: ending => this.#ended(ending) })
    if (this.#process.isReady) this.#ready()
  }

  #ready (): void {
    this.#wasReady = true
    // Connections use the same channel, so they arrive after the policy.
    void this.#tellAll()
    this.#passNext()
    // Only now, so that this process starts first while the processors are busy.
    if (this.#hasRevision) this.#options.spare.prepare()
  }

  async #tellAll (): Promise<void> {
    const part = this.#options.part(this)
    if (part === undefined) return
    this.#hasRevision = true
    await this.#process?.enforce(part)
  }

  #reported (report: WorkerReport): void {
    this.lastReport = report
    this.#stallSeconds = Math.max(this.#stallSeconds, report.stallSeconds)
    this.#options.onReport(report)
  }

  #ended (ending: Ending): void {
    const { name, log, onEnd } = this.#options
    const wasReady = this.#wasReady
    this.#wasReady = false
    this.#process = undefined
    this.lastReport = undefined
    if (this.#isClosing) return this.#gone()
    this.ends++
    log.error('a worker has ended and is started again', new Error(ending.how), { worker: name, vms: ending.active.size })
    const now = performance.now()
    this.#endedMs = [...this.#endedMs.filter(time => now - time < RECENT_MS), ...ending.byItself || !wasReady ? [now] : []]
    // Before the next process starts: a VM may be cut off because of this end.
    onEnd(this, ending)
    const tooOften = this.#endedMs.length - AT_ONCE
    if (tooOften <= 0) this.#start()
    else this.#restart = setTimeout(() => this.#start(), Math.min(FIRST_PAUSE_MS * 2 ** (tooOften - 1), LONGEST_PAUSE_MS))
  }

  #passNext (): void {
    const process = this.#process
    if (process?.isReady !== true || this.#isPassing || !this.#hasRevision) return
    const arrival = this.#waiting.shift()
    if (arrival === undefined) return
    if (!this.#options.isWanted(arrival)) {
      arrival.socket.destroy()
      return this.#passNext()
    }
    this.#isPassing = true
    process.pass(arrival, () => {
      this.#isPassing = false
      this.#passNext()
    })
  }
}
