// One fake VM as its driver sees it.
import { rmSync } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Vm, VmHandle, VmImaging, VmState } from '../../core/library/hypervisor.ts'
import { endProcess } from '../../core/process/end.ts'
import { isAlive } from '../../core/process/identity.ts'
import { connectUnix } from '../../core/process/unix-socket.ts'
import { FakeControl } from './control.ts'
import { createFakeImaging } from './imaging.ts'
import { AGENT_SOCKET, FOLDER, type FakeScript } from './script.ts'

const INTERVAL_MS = 100
const DEADLINE_MS = 1000

export class FakeVm implements Vm {
  readonly handle: VmHandle
  state: VmState
  readonly known: Promise<void>
  readonly imaging?: VmImaging
  readonly #ended: Promise<void>
  readonly #listeners = new Set<(state: VmState) => void>()
  #resolveKnown = (): void => {}
  #resolveEnded = (): void => {}
  #control: FakeControl | undefined
  #agent: Socket | undefined
  #turn = 0
  #connecting: Promise<unknown> = Promise.resolve()
  #released = false

  constructor (handle: VmHandle, state: VmState, script: () => FakeScript | Promise<FakeScript>, control?: FakeControl) {
    this.handle = handle
    this.state = state
    this.#control = control
    this.imaging = createFakeImaging({ handle, script, control: () => this.#mustControl(), refresh: () => this.#refresh() })
    this.known = new Promise((resolve) => { this.#resolveKnown = resolve })
    this.#ended = new Promise((resolve) => { this.#resolveEnded = resolve })
    if (state.status === 'gone') this.#resolveEnded()
    else this.#watch().catch((error: unknown) => { throw error })
  }

  onState (listener: (state: VmState) => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  async connect (): Promise<Duplex> {
    const turn = ++this.#turn
    this.#agent?.destroy()
    if (this.state.status === 'gone') throw new Error('the fake VM has ended')
    // One after the other: the fake VMM ends the older of two connections, so they must come in the order of their turns.
    const connecting = this.#connecting.then(async () => await connectUnix(join(this.handle.directory, FOLDER), AGENT_SOCKET))
    this.#connecting = connecting.catch(() => {})
    const socket = await connecting
    if (turn === this.#turn) this.#agent = socket
    else socket.destroy()
    return socket
  }

  async kill (): Promise<void> {
    await endProcess(this.handle)
    this.#end()
  }

  wait (): Promise<void> { return this.#ended }

  async rotate (file: 'output' | 'vmm', path: string): Promise<void> {
    this.#mustControl()
    const { uid, gid } = await stat(`/proc/${this.handle.pid}`)
    const handle = await open(path, 'a')
    try {
      if (process.getuid?.() === 0) await handle.chown(uid, gid)
    } finally {
      await handle.close()
    }
    await this.#mustControl().ask({ do: 'rotate', file, text: path })
  }

  async replaceDisk (id: string, path: string): Promise<void> {
    const { refused } = await this.#mustControl().ask({ do: 'replace', disk: id, text: path })
    if (refused !== undefined) throw new Error(`the fake VMM cannot replace the disk: ${refused}`)
  }

  release (): void {
    this.#released = true
    this.#listeners.clear()
    this.#agent?.destroy()
    this.#control?.close()
  }

  #mustControl (): FakeControl {
    if (this.#control === undefined) throw new Error('the fake VM cannot be spoken to')
    return this.#control
  }

  async #refresh (): Promise<void> {
    const { status } = await this.#mustControl().ask({ do: 'status' })
    this.#set({ status })
  }

  async #watch (): Promise<void> {
    while (!this.#released && this.state.status !== 'gone') {
      if (!isAlive(this.handle)) return this.#end()
      await this.#ask()
      // Without control it ends or hangs: a short pause that keeps the process alive, as somebody may wait for that end.
      if (this.#control === undefined) await sleep(3)
      else await Promise.race([sleep(INTERVAL_MS, undefined, { ref: false }), this.#control.closed])
    }
  }

  async #ask (): Promise<void> {
    const late = setTimeout(() => {
      if (isAlive(this.handle)) this.#set({ status: 'hung', reason: `the fake VMM has not answered for ${DEADLINE_MS} ms` })
    }, DEADLINE_MS).unref()
    try {
      this.#control ??= await FakeControl.open(this.handle.directory)
      const { status } = await this.#control.ask({ do: 'status' })
      this.#set({ status })
    } catch (error) {
      // it ends, which the next round sees
      if (!(error instanceof Error)) throw error
      this.#control = undefined
    } finally {
      clearTimeout(late)
    }
  }

  #end (): void {
    if (this.state.status === 'gone') return
    this.#control?.close()
    if (!this.#released) rmSync(join(this.handle.directory, FOLDER), { recursive: true, force: true })
    this.#set({ status: 'gone' })
    this.#resolveEnded()
    this.#listeners.clear()
  }

  #set (state: VmState): void {
    this.#resolveKnown()
    if (this.#released || this.state.status === 'gone' || (this.state.status === state.status && this.state.reason === state.reason)) return
    this.state = state
    for (const listener of [...this.#listeners]) listener(state)
  }
}
