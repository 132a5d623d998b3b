// One running VM whose VMM has a REST API: keeps its state current, and executes its owner's calls. It belongs to no server: any server may take it over by its handle.
import { readFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ProcessIdentity } from '../../contracts/services.ts'
import { OneAtATime } from '../../jobs/one-at-a-time.ts'
import { endProcess } from '../../process/end.ts'
import { isAlive } from '../../process/identity.ts'
import { connectUnix } from '../../process/unix-socket.ts'
import type { Vm, VmBalloon, VmDisk, VmHandle, VmImaging, VmState } from '../hypervisor.ts'
import { GuestUnreachable, VmGone, VmmRefused, VmmSilent, VmmUnreachable } from './errors.ts'
import { outputEnded, rotateOutput } from './output.ts'
import type { RunFolder } from './run-folder.ts'
import { endPauseMs, sameState, stateOfSilence } from './silence.ts'
import { createPause } from './wake-pause.ts'

const CONNECT_ATTEMPT_MS = 1000
const CONNECT_PAUSES_MS = { first: 5, most: 100 }

export interface RestVmOptions {
  readonly heartbeat: {
    /** pause between two requests, `ms` */
    readonly intervalMs: number
    /** silence after which the VM counts as hung, `ms` */
    readonly deadlineMs: number
  }
  /** time for the guest to boot until its agent can be reached, `ms` */
  readonly guestTimeoutMs: number
  /** receives what a listener of the VM threw */
  readonly onError: (error: unknown) => void
}

/** The parts of a VM that depend on the driver. */
export interface RestVmParts {
  readonly handle: VmHandle
  readonly identity: ProcessIdentity
  readonly folder: RunFolder
  /** Tries once to reach the guest's agent. @param timeoutMs for its answer */
  readonly reach: (timeoutMs: number) => Promise<Socket>
  /** name of the socket of its API, in that folder's room */
  readonly api: string
  /** Asks the VMM for the VM's state; undefined when the answer is not a known state. */
  readonly ask: () => Promise<VmState | undefined>
  readonly imaging?: (vm: RestVm) => VmImaging
  /** Whether a long request of ours runs. The VMM serves one request at a time, so its silence means nothing then. */
  readonly isBusy?: () => boolean
  readonly replaceDisk?: (id: string, path: string) => Promise<void>
  readonly limitDisks?: (bytesPerSecond: number | undefined) => Promise<void>
  readonly plugDisk?: (disk: VmDisk) => Promise<void>
  readonly unplugDisk?: (id: string) => Promise<void>
  readonly balloon?: VmBalloon
}

export class RestVm implements Vm {
  readonly handle: VmHandle
  readonly imaging?: VmImaging
  readonly replaceDisk?: (id: string, path: string) => Promise<void>
  readonly limitDisks?: (bytesPerSecond: number | undefined) => Promise<void>
  readonly plugDisk?: (disk: VmDisk) => Promise<void>
  readonly unplugDisk?: (id: string) => Promise<void>
  readonly balloon?: VmBalloon
  readonly #parts: RestVmParts
  readonly #options: RestVmOptions
  readonly #folderMark: string | undefined
  readonly #listeners = new Set<(state: VmState) => void>()
  readonly #pause = createPause()
  readonly #known: Promise<void>
  readonly #ended: Promise<void>
  #resolveKnown: () => void = () => {}
  #resolveEnded: () => void = () => {}
  #state: VmState
  #lostAt = -Infinity
  /** An idle connection to the VMM: it closes as soon as the VMM ends, and until then it keeps the server's process alive for callers that wait for that. */
  #line: Socket | undefined
  #heldAt = -Infinity
  #agent: Socket | undefined
  #agentTurn = 0
  readonly #attempts = new OneAtATime()
  readonly #changes = new OneAtATime()
  #released = false

  constructor (parts: RestVmParts, state: VmState, options: RestVmOptions) {
    this.handle = parts.handle
    this.#parts = parts
    this.#options = options
    this.#folderMark = parts.folder.mark()
    this.#state = state
    if (parts.imaging !== undefined) this.imaging = parts.imaging(this)
    if (parts.replaceDisk !== undefined) this.replaceDisk = this.#whileAlive(parts.replaceDisk)
    if (parts.limitDisks !== undefined) this.limitDisks = this.#whileAlive(parts.limitDisks)
    if (parts.plugDisk !== undefined) this.plugDisk = this.#whileAlive(parts.plugDisk)
    if (parts.unplugDisk !== undefined) this.unplugDisk = this.#whileAlive(parts.unplugDisk)
    if (parts.balloon !== undefined) this.balloon = parts.balloon
    this.#known = new Promise((resolve) => { this.#resolveKnown = resolve })
    this.#ended = new Promise((resolve) => { this.#resolveEnded = resolve })
    if (state.status === 'gone') this.#resolveEnded()
    else this.#watch().catch(options.onError)
  }

  get state (): VmState { return this.#state }

  /** Resolves when the VMM has reported its state, or has been found silent. */
  known (): Promise<void> { return this.#known }

  onState (listener: (state: VmState) => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  /** Asks at once instead of at the next heartbeat. */
  notice (): void { this.#pause.end() }

  /** Takes the state that the VMM reports now. */
  async refresh (ask: RestVmParts['ask']): Promise<void> {
    const state = await ask()
    if (state !== undefined) this.#set(state)
  }

  /** The guest may still be booting, or being restored, so this tries until it answers. */
  async connect (): Promise<Duplex> {
    const turn = ++this.#agentTurn
    this.#agent?.destroy()
    const deadline = performance.now() + this.#options.guestTimeoutMs
    for (let pauseMs = CONNECT_PAUSES_MS.first; ; pauseMs = Math.min(pauseMs * 2, CONNECT_PAUSES_MS.most)) {
      this.#mustBeThere()
      try {
        const socket = await this.#attempt()
        if (this.#isLast(turn)) this.#agent = socket
        else socket.destroy()
        return socket
      } catch (error) {
        this.#mustBeThere()
        // A later connection has replaced this one, which is therefore closed, as an earlier one would be.
        if (!this.#isLast(turn)) return new Socket().destroy()
        if (performance.now() > deadline) throw error
      }
      await sleep(pauseMs)
    }
  }

  /** One at a time: the guest keeps the stream that reaches it last, and that must be the last caller's. */
  #attempt (): Promise<Socket> {
    return this.#attempts.run(() => {
      // It would end the stream of whoever has the VM now.
      if (this.#released) throw GuestUnreachable('the VM was released')
      return this.#parts.reach(CONNECT_ATTEMPT_MS)
    })
  }

  #isLast (turn: number): boolean { return turn === this.#agentTurn && !this.#released }

  async kill (): Promise<void> {
    await endProcess(this.#parts.identity)
    if (this.#state.status !== 'gone') await outputEnded(this.#parts.folder)
    this.#end()
  }

  wait (): Promise<void> { return this.#ended }

  async rotate (file: 'output' | 'vmm', path: string): Promise<void> {
    this.#mustBeThere()
    await rotateOutput(this.#parts.folder, file, path, this.handle.pid)
  }

  release (): void {
    this.#released = true
    this.#listeners.clear()
    this.#agent?.destroy()
    this.#line?.destroy()
    this.#pause.end()
  }

  #mustBeThere (): void {
    if (this.#state.status === 'gone') throw VmGone(this.handle.directory)
  }

  /** Makes one change at a time, and none to a VM that has ended. */
  #whileAlive<A extends unknown[]> (change: (...args: A) => Promise<void>): (...args: A) => Promise<void> {
    return (...args) => this.#changes.run(() => {
      this.#mustBeThere()
      return change(...args)
    })
  }

  async #watch (): Promise<void> {
    while (!this.#released && this.#state.status !== 'gone') {
      const pauseMs = await this.#look().catch((error: unknown) => {
        // Such as a server out of descriptors, which has some again later: the VM must not go on unwatched.
        this.#options.onError(error)
        return this.#options.heartbeat.intervalMs
      })
      if (pauseMs > 0) await this.#pause.start(pauseMs)
    }
  }

  /** Sends one request to the VMM. Returns the pause until the next. */
  async #look (): Promise<number> {
    const { intervalMs } = this.#options.heartbeat
    try {
      const state = await this.#parts.ask()
      // In no state that is known it is as good as silent, and whoever waits to know it waits no longer.
      if (state === undefined) return await this.#withoutAnswer()
      this.#set(state)
      await this.#hold()
      this.#lostAt = -Infinity
      return intervalMs
    } catch (error) {
      if (VmmSilent.is(error)) {
        if (this.#parts.isBusy?.() !== true) await this.#setSilent()
        return isAlive(this.#parts.identity) ? 1 : this.#end()
      }
      if (!VmmUnreachable.is(error) && !VmmRefused.is(error)) throw error
      return await this.#withoutAnswer()
    }
  }

  async #hold (): Promise<void> {
    if (this.#line?.destroyed === false || this.#released) return
    // Its end has the VMM asked at once: one that ends it again and again must not have itself asked without a pause.
    const now = performance.now()
    if (now - this.#heldAt < this.#options.heartbeat.intervalMs) return
    this.#heldAt = now
    const line = await connectUnix(this.#parts.folder.room, this.#parts.api).catch((error: unknown) => { throw VmmUnreachable.from(error, this.handle.driver, 'it has just closed its socket') })
    this.#line = line
    line.resume()
    line.once('close', () => this.notice())
    if (this.#released) line.destroy()
  }

  async #withoutAnswer (): Promise<number> {
    if (this.#released) return 0
    if (!isAlive(this.#parts.identity)) return this.#end()
    if (this.#lostAt === -Infinity) this.#lostAt = performance.now()
    // A VMM that ends closes its socket before its process ends.
    const silentMs = performance.now() - this.#lostAt
    if (silentMs < this.#options.heartbeat.deadlineMs) {
      // Unlike the heartbeat's, this pause keeps the process alive: a caller may wait for the end that is about to come.
      await sleep(endPauseMs(silentMs))
      return 0
    }
    await this.#setSilent()
    return this.#options.heartbeat.intervalMs
  }

  async #setSilent (): Promise<void> {
    const { pid } = this.#parts.identity
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
    if (stat === undefined || !isAlive(this.#parts.identity)) return
    const state = stateOfSilence(stat, this.#options.heartbeat.deadlineMs)
    if (state !== undefined) this.#set(state)
  }

  #end (): 0 {
    if (this.#state.status === 'gone') return 0
    // The agent's stream stays open: the guest's last message may still be in it.
    if (!this.#released) this.#removeFolder()
    this.#line?.destroy()
    this.#set({ status: 'gone' })
    this.#resolveEnded()
    this.#listeners.clear()
    this.#pause.end()
    return 0
  }

  /** The VMM's user may have left something there that cannot be removed: its VM is gone all the same. */
  #removeFolder (): void {
    const { folder } = this.#parts
    try {
      if (folder.mark() === this.#folderMark) folder.remove()
    } catch (error) {
      this.#options.onError(error)
    }
  }

  #set (state: VmState): void {
    this.#resolveKnown()
    if (this.#released || this.#state.status === 'gone' || sameState(this.#state, state)) return
    this.#state = state
    for (const listener of [...this.#listeners]) {
      try {
        listener(state)
      } catch (error) {
        this.#options.onError(error)
      }
    }
  }
}
