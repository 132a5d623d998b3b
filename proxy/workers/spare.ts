// Keeps one worker process without VMs ready. It replaces a worker that ends at once, while a new process would first have to start.
import type { LineTaker } from '../audit/pipe.ts'
import type { ProxyConfig } from '../config/schema.ts'
import type { Log } from '../log/log.ts'
import type { Launch } from './launch.ts'
import { WorkerProcess, type WorkerOwner } from './process.ts'

export interface SpareOptions {
  readonly config: ProxyConfig
  readonly launch: Launch
  /** takes the log lines of workers */
  readonly taker: LineTaker
  readonly log: Log
}

/** Guests' first requests come right after the first policy, and the start of a process would take half of a small host from them. */
const FIRST_AFTER_MS = 2_000

export class Spare {
  readonly #options: SpareOptions
  #process: WorkerProcess | undefined
  /** the wait before the first one */
  #wait: NodeJS.Timeout | 'over' | undefined
  #isClosed = false

  constructor (options: SpareOptions) {
    this.#options = options
  }

  /** A process for `owner`: the spare one, or a new one. */
  take (owner: WorkerOwner): WorkerProcess {
    const spare = this.#process
    this.#process = undefined
    if (spare === undefined) return this.#create(owner)
    spare.belongTo(owner)
    return spare
  }

  /** Starts a spare process, unless there is one; the first one after a while. */
  prepare (): void {
    if (this.#wait === 'over') return this.#start()
    this.#wait ??= setTimeout(() => {
      this.#wait = 'over'
      this.#start()
    }, FIRST_AFTER_MS)
  }

  #start (): void {
    if (this.#isClosed || this.#process !== undefined) return
    const own = this.#create({
      ready () {},
      reported () {},
      ended: ({ how }) => {
        if (this.#process === own) this.#process = undefined
        this.#options.log.warn('a worker that had no VMs yet has ended', { reason: how })
      }
    })
    this.#process = own
  }

  close (): void {
    this.#isClosed = true
    if (this.#wait !== 'over') clearTimeout(this.#wait)
    this.#process?.belongTo({ ready () {}, reported () {}, ended () {} })
    this.#process?.kill()
  }

  #create (owner: WorkerOwner): WorkerProcess {
    const { config, launch, taker, log } = this.#options
    return new WorkerProcess(launch(), config, taker, log, owner)
  }
}
