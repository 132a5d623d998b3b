// One VM of an instance and the conversation with its guest: keeps the link up, sends the workload once, tells what happens.
import { BerthError } from '../../core/errors/define.ts'
import type { Logger } from '../../core/contracts/services.ts'
import type { Vm } from '../../core/contracts/hypervisor.ts'
import type { GuestHello, GuestLink, GuestService, Workload } from '../guest/contract.ts'
import { pause } from './pause.ts'
import type { ProgramPhase } from './state.ts'

/** A guest that has said `exited` powers off by itself; one that does not is ended after this time. */
const EXIT_GRACE_MS = 10_000
const FIRST_RETRY_MS = 100
const LAST_RETRY_MS = 5000

export interface MachineOptions {
  readonly vm: Vm
  readonly guest: GuestService
  readonly workload: Workload
  /** what an image wants in place of SIGTERM */
  readonly stopSignal?: number
  /** `fresh`: just launched, the workload is sent at once; the others are taken over from an earlier server */
  readonly origin: 'fresh' | 'adopted' | 'adopted-running'
  readonly log: Logger
}

export interface MachineListener {
  /** `vm.state` or `program` has changed */
  changed (): void
  /** the VMM is gone; the last call */
  gone (): void
}

export class Machine {
  readonly vm: Vm
  program: ProgramPhase
  /** whether the server has asked the VM to end */
  stopping = false
  /** whether the VM was there when the server took it on */
  readonly seenAlive: boolean
  #origin: MachineOptions['origin']
  readonly #options: MachineOptions
  readonly #over = new AbortController()
  #link: GuestLink | undefined
  #ready = false
  readonly #waiters = new Set<() => void>()
  #listener: MachineListener | undefined
  #exitTimer: NodeJS.Timeout | undefined
  readonly #unsubscribe: () => void
  /** Resolves when the VMM is gone and the listener has been told. */
  readonly ended: Promise<void>
  #resolveEnded: () => void = () => {}

  constructor (options: MachineOptions) {
    this.#options = options
    this.vm = options.vm
    this.#origin = options.origin
    this.ended = new Promise((resolve) => { this.#resolveEnded = resolve })
    this.seenAlive = options.vm.state.status !== 'gone'
    this.program = options.origin === 'adopted-running' ? 'started' : 'unseen'
    this.#unsubscribe = this.vm.onState((state) => {
      if (state.status === 'gone') this.#end()
      else this.#listener?.changed()
    })
    if (this.seenAlive) {
      this.#converse().catch((error: unknown) => { options.log.error({ err: error }, 'the conversation with a guest failed') })
    }
  }

  /** what the guest was told to run */
  get workload (): Workload {
    return this.#options.workload
  }

  /** Sets who is told. It is told at once when the VM is gone already. */
  listen (listener: MachineListener): void {
    this.#listener = listener
    if (this.vm.state.status === 'gone') this.#end()
  }

  /** The conversation, when the guest has answered on it. */
  get link (): GuestLink | undefined {
    return this.#ready ? this.#link : undefined
  }

  /** The conversation, waiting for it up to `timeoutMs`; `undefined` when it did not come up. */
  async awaitLink (timeoutMs: number, signal: AbortSignal): Promise<GuestLink | undefined> {
    if (this.link !== undefined) return this.link
    const deadline = AbortSignal.any([signal, this.#over.signal, AbortSignal.timeout(timeoutMs)])
    while (this.link === undefined && !deadline.aborted) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiters.delete(wake)
          deadline.removeEventListener('abort', wake)
          resolve()
        }
        this.#waiters.add(wake)
        deadline.addEventListener('abort', wake)
      })
    }
    return this.link
  }

  /**
   * Ends the VM: SIGTERM to its program when the guest can be reached, SIGKILL after `graceMs`, and when that does not
   * end it, the VMM is killed. Returns when the VMM is gone.
   */
  async shutDown (graceMs: number): Promise<void> {
    this.stopping = true
    const link = this.link
    if (graceMs > 0 && link !== undefined && this.vm.state.status === 'running') {
      const gone = this.vm.wait()
      // The guest takes note at once or not at all; powering off takes a moment under emulation.
      const accepted = await within(1500, link.shutdown(graceMs, this.#options.stopSignal))
      if (accepted && await within(graceMs + 3000, gone)) return
    }
    await this.vm.kill()
  }

  /** Lets go of the VM; it runs on. */
  release (): void {
    this.#close()
    this.vm.release()
  }

  async #converse (): Promise<void> {
    const { signal } = this.#over
    let retryMs = FIRST_RETRY_MS
    while (!signal.aborted) {
      try {
        const link = this.#options.guest.link(await this.vm.connect())
        this.#link = link
        if (await this.#serve(link)) retryMs = FIRST_RETRY_MS
      } catch (error) {
        this.#options.log.debug({ err: error }, 'no connection to a guest yet')
      }
      this.#link = undefined
      this.#ready = false
      if (signal.aborted) return
      await pause(retryMs, signal)
      retryMs = Math.min(retryMs * 2, LAST_RETRY_MS)
    }
  }

  /** Serves one link until it closes. Returns whether the guest had answered on it. */
  async #serve (link: GuestLink): Promise<boolean> {
    const unsubscribe = [link.onStarted(() => { this.#started() }), link.onExited(() => { this.#exited() })]
    let answered = false
    // A fresh guest needs no question first: the workload waits in its port until it is up.
    const asked = this.#origin === 'fresh'
    this.#origin = 'adopted'
    if (asked) this.#run(link)
    link.hello.then((hello) => {
      answered = true
      this.#greeted(link, hello, asked)
    }, () => {})
    if (this.#over.signal.aborted) link.close()
    const reason = await link.closed
    for (const stop of unsubscribe) stop()
    this.#options.log.debug({ reason }, 'the link to a guest has closed')
    return answered
  }

  #greeted (link: GuestLink, hello: GuestHello, asked: boolean): void {
    if (hello.phase === 'waiting' && !asked) this.#run(link)
    if (hello.phase === 'running') this.#started()
    if (hello.phase === 'exiting') this.#exited()
    this.#ready = true
    for (const wake of [...this.#waiters]) wake()
  }

  #run (link: GuestLink): void {
    link.run(this.#options.workload).then(() => { this.#started() }, (error: unknown) => {
      // A refusal reaches the caller through the report, a broken link is taken up again by the next one.
      const level = error instanceof BerthError ? 'info' : 'error'
      this.#options.log[level]({ err: error }, 'the guest did not start the program')
    })
  }

  #started (): void {
    if (this.program !== 'unseen') return
    this.program = 'started'
    this.#listener?.changed()
  }

  #exited (): void {
    if (this.program === 'exited') return
    this.program = 'exited'
    this.#exitTimer = setTimeout(() => {
      this.#options.log.warn('a guest said that its program has exited and did not power off; ending its VMM')
      this.vm.kill().catch((error: unknown) => { this.#options.log.error({ err: error }, 'a VMM could not be ended') })
    }, EXIT_GRACE_MS)
    this.#exitTimer.unref()
    this.#listener?.changed()
  }

  #end (): void {
    this.#close()
    this.#listener?.gone()
    this.#resolveEnded()
  }

  #close (): void {
    if (this.#over.signal.aborted) return
    this.#over.abort()
    clearTimeout(this.#exitTimer)
    this.#unsubscribe()
    this.#link?.close()
  }
}

/** Whether `work` was fulfilled in time; a late failure is nobody's business any more. */
async function within (timeoutMs: number, work: Promise<unknown>): Promise<boolean> {
  const timer = new AbortController()
  const late = pause(timeoutMs, timer.signal).then(() => false)
  const done = work.then(() => true, () => false)
  try {
    return await Promise.race([done, late])
  } finally {
    timer.abort()
  }
}
