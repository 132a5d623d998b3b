// One instance of this host in memory: its record, its VM, and the ready-made answer that costs nothing to give.
import { KeptJson } from '../../../core/http/kept-json.ts'
import type { NetworkAddress } from '../../networking/contract.ts'
import type { Health } from '../health/check.ts'
import { hostClock } from '../life/moment.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import { withPhase } from '../phases/phase.ts'
import type { InstanceRecord, RecordPatch } from './record.ts'
import type { InstanceRepository } from './repository.ts'
import type { InstanceView } from '../api/schemas.ts'
import { deriveState, type DerivedState, type StateFacts } from './state.ts'
import type { InstanceState } from '../contract.ts'
import { viewOf } from '../api/view.ts'

export type InstanceListener = (instance: LiveInstance) => void

/** A change of the row, or what makes it of the record that it is based on: only such a change keeps what another one that is being stored has changed within the same field, as of `life`. */
export type RecordChange = RecordPatch | ((record: InstanceRecord) => RecordPatch)

export class LiveInstance {
  #record: InstanceRecord
  /** the record as its row has it */
  #stored: InstanceRecord
  #session: GuestSession | undefined
  /** why nothing can be known about the instance */
  #problem: string | undefined
  /** why the last restore from its image failed */
  #imageProblem: string | undefined
  #derived: DerivedState
  /** made when somebody asks: most instances of a large host are at rest, and nobody does */
  #view: InstanceView | undefined
  #json: KeptJson | undefined
  #deleted = false
  #health: Health | undefined
  #writes: Promise<void> = Promise.resolve()
  /** how much work that takes its VM is under way, one part of the other; changed with the lock held */
  leavings = 0
  /** the settling of the VM's end that is under way */
  settling: Promise<void> | undefined
  readonly #listeners = new Set<InstanceListener>()
  readonly #repository: InstanceRepository
  readonly #address: () => NetworkAddress | undefined
  readonly #moved: (instance: LiveInstance, from: InstanceState) => void

  /**
   * @param address returns the instance's address in the network, if it has one
   * @param moved called at each change of state, before the listeners
   */
  constructor (record: InstanceRecord, repository: InstanceRepository, address: () => NetworkAddress | undefined, moved: (instance: LiveInstance, from: InstanceState) => void) {
    this.#record = record
    this.#stored = record
    this.#repository = repository
    this.#address = address
    this.#moved = moved
    this.#derived = this.#derive()
  }

  get id (): string { return this.#record.id }
  get name (): string { return this.#record.name }
  get record (): InstanceRecord { return this.#record }
  get session (): GuestSession | undefined { return this.#session }
  get derived (): DerivedState { return this.#derived }
  get state (): InstanceState { return this.#derived.state }
  get health (): Health | undefined { return this.#health }
  get deleted (): boolean { return this.#deleted }
  /** whether it is about to lose its VM, by a standby, a stop, a delete or an end for its health: a caller who is told that it runs would be cut off */
  get isLeaving (): boolean { return this.leavings > 0 }
  /** false: memory has what the row has not */
  get isStored (): boolean { return this.#record === this.#stored }

  get view (): InstanceView {
    this.#view ??= viewOf(this.#record, this.#derived, this.#address(), this.#health)
    return this.#view
  }

  /** The view as JSON text. */
  get json (): KeptJson {
    this.#json ??= new KeptJson(JSON.stringify(this.view))
    return this.#json
  }

  /** Stores a change. Changes of one instance are written one after the other, each based on the one before. */
  async save (change: RecordChange): Promise<void> {
    await this.#write(change)
    this.refresh()
  }

  /** Stores a change that is so whether it can be stored or not: in memory it holds, and the next change stores it, too. Returns the error when it could not be stored. */
  async saveFact (change: RecordChange): Promise<unknown> {
    const failure = await this.#writeFact(change)
    this.refresh()
    return failure
  }

  /** Stores a change that comes with another VM, or with none: nobody sees one without the other. Returns the error when the change could not be stored. */
  async replaceSession (session: GuestSession | undefined, change: RecordChange): Promise<unknown> {
    // A VM that has ended, or has begun to run, cannot be taken back.
    const failure = await this.#writeFact(change)
    this.setSession(session)
    return failure
  }

  async #writeFact (change: RecordChange): Promise<unknown> {
    let failure: unknown
    // Before the next change is based on it.
    await this.#write(change, (error, patch) => {
      failure = error
      this.#patch(patch)
    })
    return failure
  }

  /** @param failed absent: it is the caller's affair */
  async #write (change: RecordChange, failed: (error: unknown, patch: RecordPatch) => void = (error) => { throw error }): Promise<void> {
    const write = this.#writes.then(async () => {
      const patch = typeof change === 'function' ? change(this.#record) : change
      try {
        this.#record = await this.#store(patch)
        this.#stored = this.#record
      } catch (error) {
        failed(error, patch)
      }
    })
    this.#writes = write.then(() => {}, () => {})
    await write
  }

  /**
   * Only this server writes the rows of its host. So a row that is ahead of the version known here holds a change of this server whose answer was lost: this one or, if this one never came to the database, one before it, whose
   * outcome is known better in memory. Its version does not tell which, so the row is written again.
   */
  async #store (change: RecordPatch): Promise<InstanceRecord> {
    const record = this.#record
    const patch = withPhase(record, change, hostClock)
    try {
      return await this.#repository.update(record, patch)
    } catch (error) {
      const version = await this.#repository.versionOf(record.id).catch(() => undefined)
      if (version === undefined || version === record.version) throw error
      return await this.#repository.update({ ...record, version }, patch)
    }
  }

  /** Returns once nothing is being stored any more. */
  async written (): Promise<void> {
    await this.#writes
  }

  /** Applies a change that could not be stored. It holds until the next start of the server, which finds the same facts again. */
  patchInMemory (patch: RecordPatch): void {
    this.#patch(patch)
    this.refresh()
  }

  /** With the phase that it begins: what is stored later began now. */
  #patch (patch: RecordPatch): void {
    this.#record = { ...this.#record, ...withPhase(this.#record, patch, hostClock) }
  }

  setSession (session: GuestSession | undefined): void {
    this.#session = session
    this.refresh()
  }

  setProblem (problem: string | undefined): void {
    this.#problem = problem
    this.refresh()
  }

  /** Shown as long as the instance is in standby. */
  setImageProblem (problem: string | undefined): void {
    this.#imageProblem = problem
    this.refresh()
  }

  /** Sets what was found of its program's health, which is not stored. */
  setHealth (health: Health | undefined): void {
    this.#health = health
    this.#renew()
  }

  /** Tells everybody who waits that the instance is deleted. */
  markDeleted (): void {
    this.#deleted = true
    this.#tell()
  }

  /** Called at each change of the answer, and at deletion. Returns the unsubscriber. */
  onChange (listener: InstanceListener): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  /** Works out the state and the answer anew. */
  refresh (): void {
    const from = this.#derived.state
    this.#derived = this.#derive()
    this.#renew()
    if (from !== this.#derived.state) this.#moved(this, from)
    this.#tell()
  }

  #renew (): void {
    this.#view = undefined
    this.#json = undefined
  }

  #derive (): DerivedState {
    const facts: StateFacts = {
      vm: this.#session?.vm.state,
      program: this.#session?.program ?? 'unseen',
      standby: this.#record.standbyAt !== null,
      ...(this.#problem === undefined ? {} : { problem: this.#problem }),
      ...(this.#imageProblem === undefined ? {} : { imageProblem: this.#imageProblem })
    }
    return deriveState(facts)
  }

  #tell (): void {
    for (const listener of [...this.#listeners]) listener(this)
  }
}
