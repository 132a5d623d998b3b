// One running VM whose VMM has a REST API: executes its owner's calls, and asks for its state. It belongs to no server: any server may take it over by its handle.
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
import { VmWatch, type Heartbeat } from './vm-watch.ts'

const CONNECT_ATTEMPT_MS = 1000
const CONNECT_PAUSES_MS = { first: 5, most: 100 }

export interface RestVmOptions {
  readonly heartbeat: Heartbeat
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
  readonly #watch: VmWatch
  /** An idle connection to the VMM: it closes as soon as the VMM ends, and until then it keeps the server's process alive for callers that wait for that. */
  #line: Socket | undefined
  #heldAt = -Infinity
  #agent: Socket | undefined
  #agentTurn = 0
  readonly #attempts = new OneAtATime()
  readonly #changes = new OneAtATime()

  constructor (parts: RestVmParts, state: VmState, options: RestVmOptions) {
    this.handle = parts.handle
    this.#parts = parts
    this.#options = options
    const { identity, folder } = parts
    const { heartbeat, onError } = options
    this.#watch = new VmWatch({ identity, folder, heartbeat, onError, look: () => this.#look(), close: () => { this.#line?.destroy() } }, state)
    if (parts.imaging !== undefined) this.imaging = parts.imaging(this)
    if (parts.replaceDisk !== undefined) this.replaceDisk = this.#whileAlive(parts.replaceDisk)
    if (parts.limitDisks !== undefined) this.limitDisks = this.#whileAlive(parts.limitDisks)
    if (parts.plugDisk !== undefined) this.plugDisk = this.#whileAlive(parts.plugDisk)
    if (parts.unplugDisk !== undefined) this.unplugDisk = this.#whileAlive(parts.unplugDisk)
    if (parts.balloon !== undefined) this.balloon = parts.balloon
    this.#watch.start()
  }

  get state (): VmState { return this.#watch.state }

  known (): Promise<void> { return this.#watch.known() }

  onState (listener: (state: VmState) => void): () => void { return this.#watch.onState(listener) }

  /** Asks at once instead of at the next heartbeat. */
  notice (): void { this.#watch.notice() }

  /** Takes the state that the VMM reports now. */
  async refresh (ask: RestVmParts['ask']): Promise<void> {
    const state = await ask()
    if (state !== undefined) this.#watch.set(state)
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
      if (this.#watch.isReleased) throw GuestUnreachable('the VM was released')
      return this.#parts.reach(CONNECT_ATTEMPT_MS)
    })
  }

  #isLast (turn: number): boolean { return turn === this.#agentTurn && !this.#watch.isReleased }

  async kill (): Promise<void> {
    await endProcess(this.#parts.identity)
    if (this.state.status !== 'gone') await outputEnded(this.#parts.folder)
    this.#watch.end()
  }

  wait (): Promise<void> { return this.#watch.ended() }

  async rotate (file: 'output' | 'vmm', path: string): Promise<void> {
    this.#mustBeThere()
    await rotateOutput(this.#parts.folder, file, path, this.handle.pid)
  }

  release (): void {
    this.#agent?.destroy()
    this.#watch.release()
  }

  #mustBeThere (): void {
    if (this.state.status === 'gone') throw VmGone(this.handle.directory)
  }

  /** Makes one change at a time, and none to a VM that has ended. */
  #whileAlive<A extends unknown[]> (change: (...args: A) => Promise<void>): (...args: A) => Promise<void> {
    return (...args) => this.#changes.run(() => {
      this.#mustBeThere()
      return change(...args)
    })
  }

  /** Sends one request to the VMM. Returns the pause until the next; undefined: it gave no state that is known. */
  async #look (): Promise<number | undefined> {
    try {
      const state = await this.#parts.ask()
      if (state === undefined) return undefined
      this.#watch.set(state)
      await this.#hold()
      return this.#options.heartbeat.intervalMs
    } catch (error) {
      if (VmmSilent.is(error)) {
        if (this.#parts.isBusy?.() !== true || !isAlive(this.#parts.identity)) await this.#watch.setSilent()
        return 1
      }
      if (!VmmUnreachable.is(error) && !VmmRefused.is(error)) throw error
      return undefined
    }
  }

  async #hold (): Promise<void> {
    if (this.#line?.destroyed === false || this.#watch.isReleased) return
    // Its end has the VMM asked at once: one that ends it again and again must not have itself asked without a pause.
    const now = performance.now()
    if (now - this.#heldAt < this.#options.heartbeat.intervalMs) return
    this.#heldAt = now
    const line = await connectUnix(this.#parts.folder.room, this.#parts.api).catch((error: unknown) => { throw VmmUnreachable.from(error, this.handle.driver, 'it has just closed its socket') })
    this.#line = line
    line.resume()
    line.once('close', () => this.notice())
    if (this.#watch.isReleased) line.destroy()
  }
}
