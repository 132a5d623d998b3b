// One worker process as its parent sees it: requests to it, its answers, and its end.
import type { ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { readPipe, type LineTaker, type PipeReader } from '../audit/pipe.ts'
import type { ProxyConfig } from '../config/schema.ts'
import type { Log } from '../log/log.ts'
import type { GuestWay } from '../gate/admit.ts'
import type { WorkerChange, WorkerRevision } from '../vms/revision.ts'
import { AUDIT_DESCRIPTOR, type FromWorker, type ToWorker, type WorkerReport } from './contract.ts'

/** A connection on its way to a worker, and the VM that had its source address when it was taken. */
export interface Arrival {
  readonly way: GuestWay
  readonly vm: string
  readonly epoch: string
  readonly socket: Socket
}

export interface Ending {
  /** in words, for the log */
  readonly how: string
  /** Whether its own work may have ended it: it was not ended from outside, nor asked to end. */
  readonly byItself: boolean
  /** VMs that had something open there */
  readonly active: ReadonlySet<string>
}

export interface WorkerOwner {
  ready (): void
  /** Called once for each report, however many callers asked for it. */
  reported (report: WorkerReport): void
  ended (ending: Ending): void
}

/** A worker that does not answer for this long hangs. Shorter than the server waits for a policy to be in force. */
const ANSWER_MS = 6_000
/** Signals by which a fault of the program itself ends it; other signals come from somebody else. */
const OWN_SIGNALS: readonly string[] = ['SIGABRT', 'SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGTRAP', 'SIGFPE']

export class WorkerProcess {
  readonly #child: ChildProcess
  readonly #log: Log
  #owner: WorkerOwner
  readonly #lines: PipeReader
  readonly #questions = new Map<number, (answer: FromWorker | undefined) => void>()
  /** VMs that have something open, or got a connection since the last report */
  #active = new Set<string>()
  #passed = new Set<string>()
  #asked = 0
  #isReady = false
  #hangs = false
  #asksReport: Promise<WorkerReport | undefined> | undefined
  #passing: { readonly socket: Socket, readonly next: () => void } | undefined

  constructor (child: ChildProcess, config: ProxyConfig, taker: LineTaker, log: Log, owner: WorkerOwner) {
    this.#child = child
    this.#owner = owner
    this.#log = log
    const pipe = child.stdio[AUDIT_DESCRIPTOR]
    if (!(pipe instanceof Readable)) throw new Error('a worker has no pipe for its log lines')
    this.#lines = readPipe(pipe, taker, () => { log.warn('a worker wrote a log line that is none') })
    child.on('message', (message: FromWorker) => {
      if (message.type === 'ready') {
        this.#isReady = true
        this.#owner.ready()
      } else {
        this.#questions.get(message.id)?.(message)
      }
    })
    const ended = ({ how, signal, byItself }: { readonly how: string, readonly signal: string | null, readonly byItself: boolean }): void => {
      this.#end()
      this.#owner.ended({ how, byItself: this.#hangs || (signal === null ? byItself : OWN_SIGNALS.includes(signal)), active: this.#active })
    }
    child.once('error', error => { if (child.pid === undefined) ended({ how: error.message, signal: null, byItself: false }) })
    child.once('exit', (code, signal) => { ended({ how: this.#hangs ? 'it hung' : signal ?? `exit code ${code}`, signal, byItself: code !== 0 }) })
    this.#send({ type: 'setup', config })
  }

  /** Sets the owner from now on. The owner is not told that the process is ready when it is ready already. */
  belongTo (owner: WorkerOwner): void {
    this.#owner = owner
  }

  get pid (): number | undefined {
    return this.#child.pid
  }

  /** whether it takes policies and connections */
  get isReady (): boolean {
    return this.#isReady
  }

  /** Resolves once the revision is in force in this process, or the process is gone: one that does not answer is ended. */
  async enforce (revision: WorkerRevision): Promise<void> {
    await this.#ask(id => ({ type: 'policy', id, revision }))
  }

  /** The same for a difference from the revision that it was sent before. */
  async change (change: WorkerChange): Promise<void> {
    await this.#ask(id => ({ type: 'change', id, change }))
  }

  /** `undefined` when the process has ended. */
  async report (): Promise<WorkerReport | undefined> {
    this.#asksReport ??= this.#askReport().finally(() => { this.#asksReport = undefined })
    return await this.#asksReport
  }

  /** Hands a connection over; `next` is called when another one can be handed over. */
  pass ({ way, vm, epoch, socket }: Arrival, next: () => void): void {
    this.#active.add(vm)
    this.#passed.add(vm)
    const passing = { socket, next }
    this.#passing = passing
    // Kept open, and closed here: Node would close its copy only when the worker confirms it, and a worker that has ended never does.
    this.#child.send({ type: 'connection', way, vm, epoch } satisfies ToWorker, socket, { keepOpen: true }, () => {
      socket.destroy()
      if (this.#passing !== passing) return
      this.#passing = undefined
      next()
    })
  }

  /** Resolves when its log lines up to now were taken. */
  async lines (): Promise<void> {
    const report = await this.report()
    if (report !== undefined) await this.#lines.reached(report.auditBytes)
  }

  drain (): void {
    this.#send({ type: 'drain' })
  }

  kill (): void {
    this.#child.kill('SIGKILL')
  }

  async #askReport (): Promise<WorkerReport | undefined> {
    this.#passed.clear()
    const answer = await this.#ask(id => ({ type: 'report', id }))
    if (answer?.type !== 'report') return undefined
    this.#active = new Set([...answer.report.active, ...this.#passed])
    this.#owner.reported(answer.report)
    return answer.report
  }

  async #ask (question: (id: number) => ToWorker): Promise<FromWorker | undefined> {
    if (!this.#isReady) return undefined
    const id = ++this.#asked
    let timer: NodeJS.Timeout | undefined
    const answer = new Promise<FromWorker | undefined>(resolve => {
      this.#questions.set(id, resolve)
      timer = setTimeout(() => this.#hang(), ANSWER_MS)
    })
    this.#send(question(id))
    return await answer.finally(() => {
      clearTimeout(timer)
      this.#questions.delete(id)
    })
  }

  #hang (): void {
    if (this.#hangs) return
    this.#hangs = true
    this.#log.error('a worker hangs and is ended', new Error(`no answer within ${ANSWER_MS} ms`))
    this.kill()
  }

  #send (message: ToWorker): void {
    // A process that cannot be sent anything has ended, or is about to; its end is reported separately.
    if (this.#child.connected) this.#child.send(message, () => {})
  }

  #end (): void {
    this.#isReady = false
    for (const resolve of [...this.#questions.values()]) resolve(undefined)
    const passing = this.#passing
    this.#passing = undefined
    passing?.socket.destroy()
    passing?.next()
  }
}
