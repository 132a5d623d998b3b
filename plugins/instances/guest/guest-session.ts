// The session of one VM with its guest: keeps the link up, sends the workload once, and tells the listener what happens.
import { BerthError } from '../../../core/errors/define.ts'
import type { Vm } from '../../../core/library/hypervisor.ts'
import { openSpan, withSpan } from '../../../core/tracing/span.ts'
import type { GuestHello, GuestIdentity, GuestLink, GuestRefusal, Workload } from '../../guest/contract.ts'
import { AgentUnavailable, GuestNotReady } from '../errors.ts'
import { isLoss, isRefusal } from './guest-errors.ts'
import type { GuestSessionListener, GuestSessionOptions } from './session-options.ts'
import { EXIT_GRACE_MS, FIRST_RETRY_MS, HUSH_LOOK_MS, LAST_RETRY_MS } from './session-times.ts'
import { within } from './within.ts'
import { withDeadline } from '../../../core/jobs/deadline.ts'
import { pause } from '../../../core/jobs/pause.ts'
import { Signal } from '../../../core/jobs/signal.ts'
import type { ProgramPhase } from '../model/state.ts'

export class GuestSession {
  readonly vm: Vm
  program: ProgramPhase
  /** why the guest did not take its workload, which ends the VM */
  refusal: GuestRefusal | undefined
  /** whether the server has asked the VM to end */
  stopping = false
  /** how often the guest was put to sleep */
  rests = 0
  /** whether a caller asked for the VM's end, so that the instance stays stopped */
  stoppedByHand = false
  /** whether the VM has lived for so long since its restore that it counts as restored; see memory-image/keep.ts */
  proven = false
  /** whether the VM was there when the session began */
  readonly seenAlive: boolean
  #wakeAs: GuestIdentity
  readonly #options: GuestSessionOptions
  readonly #over = new AbortController()
  #given: GuestLink | undefined
  #link: GuestLink | undefined
  #ready = false
  readonly #waiters = new Set<() => void>()
  #listener: GuestSessionListener | undefined
  #exitTimer: NodeJS.Timeout | undefined
  /** whether the guest is to be asleep */
  #resting = false
  /** whether the guest must be woken before its program counts as started */
  #unwoken: boolean
  /** whether the VMM is being ended while the instance goes on */
  #leaving = false
  /** whether the session must hold no link now */
  #hushed = false
  readonly #spoken = new Signal()
  /** Resolves when the guest is awake. */
  readonly awake: Promise<void>
  #resolveAwake: () => void = () => {}
  /** Resolves when its program runs, or has run. */
  readonly started: Promise<void>
  #resolveStarted: () => void = () => {}
  readonly #unsubscribe: () => void
  /** part of the trace of the request that started the VM; ends when the program runs, or when the VM has ended */
  readonly #coming = openSpan('guest until its program runs')
  /** Resolves when the VMM is gone and the listener has been told. */
  readonly ended: Promise<void>
  #resolveEnded: () => void = () => {}

  constructor (options: GuestSessionOptions) {
    this.#options = options
    this.vm = options.vm
    this.#wakeAs = options.wakeAs
    this.#given = options.link
    this.ended = new Promise((resolve) => { this.#resolveEnded = resolve })
    this.awake = new Promise((resolve) => { this.#resolveAwake = resolve })
    this.started = new Promise((resolve) => { this.#resolveStarted = resolve })
    this.seenAlive = options.vm.state.status !== 'gone'
    this.#unwoken = options.origin === 'restored'
    this.program = options.origin === 'running' ? 'started' : 'unseen'
    if (this.program === 'started') this.#resolveStarted()
    this.#unsubscribe = this.vm.onState((state) => {
      if (state.status === 'gone') this.#end()
      else this.#listener?.changed()
    })
    if (this.seenAlive) {
      withSpan(this.#coming, async () => { await this.#converse() }).catch((error: unknown) => { options.log.error({ err: error }, 'the conversation with a guest failed') })
    }
  }

  /** whether the guest is asleep, or on its way there */
  get isResting (): boolean { return this.#resting }

  /** what the guest was told to run */
  get workload (): Workload { return this.#options.workload }

  /** Sets the listener, which is called at once when the VM is gone already. */
  listen (listener: GuestSessionListener): void {
    this.#listener = listener
    if (this.vm.state.status === 'gone') this.#end()
  }

  /** The link, once the guest has answered on it. */
  get link (): GuestLink | undefined { return this.#ready ? this.#link : undefined }

  /** The link; waits for it up to `timeoutMs`. `undefined` when it did not come up. */
  async awaitLink (timeoutMs: number, signal: AbortSignal): Promise<GuestLink | undefined> {
    if (this.link !== undefined) return this.link
    const deadline = withDeadline(timeoutMs, signal, this.#over.signal)
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
      if (await within(1500, link.shutdown(graceMs, this.#options.stopSignal)) && await within(graceMs + 3000, gone)) return
    }
    await this.vm.kill()
  }

  /**
   * Freezes everything in the guest but its agent, after the guest has written its files out. Open exec and cp sessions stay open on the guest's side.
   * @throws AgentUnavailable, GuestNotReady
   */
  async sleep (timeoutMs: number, signal: AbortSignal): Promise<void> {
    const link = await this.awaitLink(timeoutMs, signal)
    if (link === undefined) throw AgentUnavailable(this.workload.hostname)
    this.#resting = true
    this.rests++
    try {
      await link.sleep()
    } catch (error) {
      // Either the guest runs on, or the next link finds it asleep and wakes it.
      this.#resting = false
      if (isLoss(error)) throw AgentUnavailable.from(error, this.workload.hostname)
      throw isRefusal(error) ? GuestNotReady.from(error, this.workload.hostname, error.message) : error
    }
  }

  /** Has the guest write its files out while it runs, so that `sleep` takes less time. A guest that cannot be asked is left as it is: `sleep` then says so. */
  async flush (): Promise<void> {
    try {
      await this.link?.flush()
    } catch (error) {
      if (!isLoss(error) && !isRefusal(error)) throw error
    }
  }

  /** Wakes a guest that was put to sleep. If the link is broken, the next link does it. */
  async wake (): Promise<void> {
    this.#resting = false
    const { link } = this
    if (link === undefined) return
    try {
      await link.wake(this.#wakeAs)
    } catch (error) {
      if (isLoss(error)) return
      // The next link finds it asleep, and tries again.
      link.close()
      throw error
    }
  }

  /** Ends the link, and sets up none until `speak`, so that nobody is connected to the guest. Calls that use the link end. */
  hush (): void {
    this.#hushed = true
    this.#link?.close()
  }

  /** Sets the link up again. A guest that is found asleep and is not to be asleep is woken. */
  speak (): void {
    this.#hushed = false
    this.#spoken.notify()
  }

  /** Says whether the VMM is about to be ended while the instance goes on without it: the listener is not told of its end then. */
  setLeaving (leaving: boolean): void {
    this.#leaving = leaving
    if (!leaving && this.vm.state.status === 'gone') this.#end()
  }

  /** Ends the session of a VM that is leaving and is kept: the VM itself is somebody else's now. */
  part (): void {
    this.#close()
    this.#resolveEnded()
  }

  /** Ends the VMM of a VM that is leaving. */
  async putAway (): Promise<void> {
    await this.vm.kill()
    this.#end()
    this.vm.release()
  }

  /** Ends the session and lets go of the VM, which runs on. */
  release (): void {
    this.#close()
    this.vm.release()
  }

  async #converse (): Promise<void> {
    const { signal } = this.#over
    let retryMs = FIRST_RETRY_MS
    while (!signal.aborted) {
      try {
        const link = this.#takeLink() ?? this.#options.guest.link(await this.vm.connect())
        this.#link = link
        if (await this.#serve(link)) retryMs = FIRST_RETRY_MS
      } catch (error) {
        this.#options.log.debug({ err: error }, 'no connection to a guest yet')
      }
      this.#link = undefined
      this.#ready = false
      if (signal.aborted) return
      if (this.#hushed) {
        while (this.#hushed && !signal.aborted) await this.#spoken.wait(HUSH_LOOK_MS, signal)
        continue
      }
      await pause(retryMs, signal)
      retryMs = Math.min(retryMs * 2, LAST_RETRY_MS)
    }
  }

  /** The link that the session was made with; only the first time. */
  #takeLink (): GuestLink | undefined {
    const link = this.#given
    this.#given = undefined
    return link
  }

  /** Serves one link until it closes. Returns whether the guest had answered on it. */
  async #serve (link: GuestLink): Promise<boolean> {
    const unsubscribe = [link.onStarted(() => { this.#started() }), link.onExited(() => { this.#exited() })]
    let answered = false
    link.hello.then((hello) => {
      answered = true
      this.#greeted(link, hello)
    }, () => {})
    if (this.#over.signal.aborted) link.close()
    const reason = await link.closed
    for (const stop of unsubscribe) stop()
    this.#options.log.debug({ reason }, 'the link to a guest has closed')
    return answered
  }

  #greeted (link: GuestLink, hello: GuestHello): void {
    if (hello.phase === 'asleep') return this.#foundAsleep(link)
    this.#unwoken = false
    // Only after the guest has answered: the workload has the time in it, which would age while it waits in the port of a guest that boots.
    if (hello.phase === 'waiting') this.#run(link)
    if (hello.phase === 'running') this.#started()
    if (hello.phase === 'exiting') this.#exited()
    this.#setReady()
    this.#resolveAwake()
  }

  #setReady (): void {
    this.#ready = true
    for (const wake of [...this.#waiters]) wake()
  }

  /** For a restored guest, and for one that an earlier server has put to sleep. */
  #foundAsleep (link: GuestLink): void {
    // In the middle of a standby or fork. Whoever put the guest to sleep wakes it.
    if (this.#resting) return this.#setReady()
    link.wake(this.#wakeAs).then(() => {
      // The guest has been told its identity.
      this.#wakeAs = {}
      this.#unwoken = false
      this.#setReady()
      this.#started()
      this.#resolveAwake()
    }, (error: unknown) => {
      // The guest stays asleep; a new link tries again, until somebody stops the instance.
      this.#options.log.error({ err: error }, 'a guest could not be woken')
      link.close()
    })
  }

  #run (link: GuestLink): void {
    this.#give(link).then(() => { this.#started() }, (error: unknown) => {
      const level = error instanceof BerthError ? 'info' : 'error'
      this.#options.log[level]({ err: error }, 'the guest did not start the program')
      // After a broken link the next link tries again.
      if (!isRefusal(error)) return
      // There is no other workload. The guest ends by itself, but for one of an older system, which goes on waiting, and one that was never asked, since it is too much for a message.
      this.refusal = error
      this.#exited()
      link.shutdown(0).catch(() => {})
    })
  }

  async #give (link: GuestLink): Promise<void> {
    const { workload, trust } = this.#options
    let given
    try {
      given = await trust?.()
    } catch (error) {
      // The guest goes on waiting for its workload, and the next link tries again.
      link.close()
      throw error
    }
    await link.run(given === undefined ? workload : { ...workload, trust: given })
  }

  #started (): void {
    if (this.#unwoken || this.program !== 'unseen') return
    this.program = 'started'
    this.#resolveStarted()
    this.#coming?.end()
    this.#listener?.changed()
  }

  #exited (): void {
    if (this.program === 'exited') return
    this.program = 'exited'
    this.#resolveStarted()
    this.#exitTimer = setTimeout(() => {
      this.#options.log.warn('a guest said that its program has exited and did not power off; ending its VMM')
      this.vm.kill().catch((error: unknown) => { this.#options.log.error({ err: error }, 'a VMM could not be ended') })
    }, EXIT_GRACE_MS).unref()
    this.#listener?.changed()
  }

  #end (): void {
    this.#close()
    if (!this.#leaving) this.#listener?.gone()
    this.#resolveEnded()
  }

  #close (): void {
    if (this.#over.signal.aborted) return
    this.#over.abort()
    this.#coming?.end()
    clearTimeout(this.#exitTimer)
    this.#unsubscribe()
    this.#given?.close()
    this.#link?.close()
  }
}
