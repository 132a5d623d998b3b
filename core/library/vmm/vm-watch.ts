// What is known of a running VM's state: its VMM is asked again and again until its process has ended, and listeners hear of each change.
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ProcessIdentity } from '../../contracts/services.ts'
import { isAlive } from '../../process/identity.ts'
import type { VmState } from '../hypervisor.ts'
import { growingPauseMs } from './growing-pause.ts'
import type { RunFolder } from './run-folder.ts'
import { sameState, stateOfSilence } from './silence.ts'
import { createPause } from './wake-pause.ts'

export interface Heartbeat {
  /** pause between two questions to the VMM, `ms` */
  readonly intervalMs: number
  /** silence after which the VM counts as hung, `ms` */
  readonly deadlineMs: number
}

export interface VmWatchParts {
  readonly identity: ProcessIdentity
  readonly folder: RunFolder
  readonly heartbeat: Heartbeat
  /** Asks the VMM once, and hands its answer to `set`. Returns the pause until the next look, `ms`; undefined: it gave no state that is known. */
  readonly look: () => Promise<number | undefined>
  /** Closes the connections to the VMM, for its process has ended. Not the guest's stream: its last message may still be in it. */
  readonly close: () => void
  /** receives what a listener, or a look, threw */
  readonly onError: (error: unknown) => void
  /** A VMM that has not been reached yet counts as silent with its first missing answer, not after the deadline. */
  readonly isSilentAtOnce?: boolean
}

export class VmWatch {
  readonly #parts: VmWatchParts
  readonly #folderMark: string | undefined
  readonly #listeners = new Set<(state: VmState) => void>()
  readonly #pause = createPause()
  readonly #known: Promise<void>
  readonly #ended: Promise<void>
  #resolveKnown: () => void = () => {}
  #resolveEnded: () => void = () => {}
  #state: VmState
  /** since when it has given no answer; undefined: it does */
  #silentSince: number | undefined
  #isReleased = false

  constructor (parts: VmWatchParts, state: VmState) {
    this.#parts = parts
    this.#folderMark = parts.folder.mark()
    this.#state = state
    this.#silentSince = parts.isSilentAtOnce === true ? -Infinity : undefined
    this.#known = new Promise((resolve) => { this.#resolveKnown = resolve })
    this.#ended = new Promise((resolve) => { this.#resolveEnded = resolve })
  }

  /** To be called once, when its owner can be asked. */
  start (): void {
    if (this.#state.status === 'gone') this.#resolveEnded()
    else this.#lookAgainAndAgain().catch(this.#parts.onError)
  }

  get state (): VmState { return this.#state }

  get isReleased (): boolean { return this.#isReleased }

  /** Resolves when the VMM has reported its state, or has been found silent. */
  known (): Promise<void> { return this.#known }

  /** Resolves when the VMM's process has ended. */
  ended (): Promise<void> { return this.#ended }

  onState (listener: (state: VmState) => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  /** Looks at once instead of after the pause. */
  notice (): void { this.#pause.end() }

  /** The VMM can be reached, whatever it answers. */
  reached (): void {
    if (this.#silentSince === -Infinity) this.#silentSince = undefined
  }

  set (state: VmState): void {
    this.#resolveKnown()
    if (this.#isReleased || this.#state.status === 'gone' || sameState(this.#state, state)) return
    this.#state = state
    for (const listener of [...this.#listeners]) {
      try {
        listener(state)
      } catch (error) {
        this.#parts.onError(error)
      }
    }
  }

  /**
   * Takes the silence of the VMM for its state, as the kernel's facts explain it.
   * @param isStill called once they are read: an answer may have come meanwhile, above all when this server was late
   */
  async setSilent (isStill = (): boolean => true): Promise<void> {
    const { identity, heartbeat } = this.#parts
    const stat = await readFile(`/proc/${identity.pid}/stat`, 'utf8').catch(() => undefined)
    if (this.#isReleased) return
    if (stat === undefined || !isAlive(identity)) {
      this.end()
      return
    }
    const state = stateOfSilence(stat, heartbeat.deadlineMs)
    if (state !== undefined && isStill()) this.set(state)
  }

  /** The VMM's process has ended. */
  end (): void {
    if (this.#state.status === 'gone') return
    this.#parts.close()
    if (!this.#isReleased) this.#removeFolder()
    this.set({ status: 'gone' })
    this.#resolveEnded()
    this.#listeners.clear()
    this.#pause.end()
  }

  /** Another server has the VM from now on: nobody here hears of it any more. */
  release (): void {
    this.#isReleased = true
    this.#listeners.clear()
    this.#parts.close()
    this.#pause.end()
  }

  async #lookAgainAndAgain (): Promise<void> {
    while (!this.#isReleased && this.#state.status !== 'gone') {
      const pauseMs = await this.#look().catch((error: unknown) => {
        // Such as a server out of descriptors, which has some again later: the VM must not go on unwatched.
        this.#parts.onError(error)
        return this.#parts.heartbeat.intervalMs
      })
      if (pauseMs > 0) await this.#pause.start(pauseMs)
    }
  }

  async #look (): Promise<number> {
    const pauseMs = await this.#parts.look()
    if (pauseMs === undefined) return await this.#withoutAnswer()
    this.#silentSince = undefined
    return pauseMs
  }

  async #withoutAnswer (): Promise<number> {
    const { identity, heartbeat } = this.#parts
    if (this.#isReleased) return 0
    if (!isAlive(identity)) {
      this.end()
      return 0
    }
    // A VMM that ends closes its socket before its process ends.
    this.#silentSince ??= performance.now()
    const silentMs = performance.now() - this.#silentSince
    if (silentMs < heartbeat.deadlineMs) {
      // Unlike the heartbeat's, this pause keeps the process alive: a caller may wait for the end that is about to come.
      await sleep(growingPauseMs(silentMs))
      return 0
    }
    await this.setSilent()
    return heartbeat.intervalMs
  }

  /** The VMM's user may have left something there that cannot be removed: its VM is gone all the same, and the next launch tries again. */
  #removeFolder (): void {
    const { folder, onError } = this.#parts
    try {
      if (folder.mark() === this.#folderMark) folder.remove()
    } catch (error) {
      onError(error)
    }
  }
}
