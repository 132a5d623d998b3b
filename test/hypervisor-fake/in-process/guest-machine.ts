// A fake VM without a process whose guest is the one of the form with a process: it speaks the agent's protocol and runs the fake programs.
import { appendFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Duplex } from 'node:stream'
import type { VmState } from '../../../core/library/hypervisor.ts'
import { duplexPair } from '../../helpers/duplex-pair.ts'
import { FakeGuest } from '../guest.ts'
import { readMemory, writeMemory } from '../image.ts'
import { parseSaved } from '../imaging.ts'
import type { SavedGuest } from '../script.ts'
import { Machine } from './machine.ts'

export class GuestMachine extends Machine {
  #guest: FakeGuest | undefined

  async boot (): Promise<void> { this.#start() }

  open (): Duplex {
    const [near, far] = duplexPair()
    near.once('close', () => { far.destroy() })
    near.on('error', () => {})
    this.#must().serve(far)
    return near
  }

  save (): string {
    const { memory: _, ...state } = this.#must().save()
    return JSON.stringify(state)
  }

  async saveMemory (path: string): Promise<void> {
    await writeMemory(path, this.spec.memoryBytes, this.#must().save().memory, 'r+')
  }

  async load (statePath: string, memoryPath: string): Promise<{ state: string, memory: string }> {
    const [state, memory] = [await readFile(statePath, 'utf8'), await readMemory(memoryPath)]
    this.#start(parseSaved(state, memory))
    return { state, memory }
  }

  /** Its program looks itself whether the VM is paused. */
  async goOn (): Promise<void> {}

  override set (state: VmState): void {
    super.set(state)
    if (state.status === 'gone') this.#guest?.stop()
  }

  #start (saved?: SavedGuest): void {
    const { files, memoryBytes, disks } = this.spec
    // What it said last is read before its stream ends.
    const powerOff = (): void => { setImmediate(() => { this.set({ status: 'gone' }) }) }
    this.#guest = new FakeGuest(
      { script: {}, files, memoryBytes, disks, ...saved === undefined ? {} : { saved } },
      (text) => { appendFileSync(this.files.output, text) }, powerOff, () => this.state.status !== 'running'
    )
  }

  #must (): FakeGuest {
    if (this.#guest === undefined) throw new Error('the guest has not booted')
    return this.#guest
  }
}
