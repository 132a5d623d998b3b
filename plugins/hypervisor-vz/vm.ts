// One VM of vfkit, controlled through its REST API while it runs, and the connection to its guest.
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRecord } from '../../core/json/is-record.ts'
import type { VmHandle, VmState } from '../../core/library/hypervisor.ts'
import { VmGone } from '../../core/library/vmm/errors.ts'
import { identityOf } from '../../core/library/vmm/handle.ts'
import { createRestClient, type RestClient } from '../../core/library/vmm/rest-client.ts'
import { RestVm, type RestVmOptions } from '../../core/library/vmm/rest-vm.ts'
import { connectAgent } from './agent.ts'
import { API_SOCKET, DRIVER, VFKIT, VSOCK } from './names.ts'
import type { Place } from './place.ts'

const ATTEMPT_MS = 1000
const PAUSES_MS = { first: 5, most: 100 }

export function clientOf (place: Place, timeoutMs: number): RestClient {
  return createRestClient({ name: VFKIT, folder: place.path, socket: API_SOCKET, timeoutMs })
}

/** The state of vfkit's VM; undefined during a transition. */
export async function askState (client: RestClient): Promise<VmState | undefined> {
  const answer = await client.ask('GET', '/vm/state')
  switch (isRecord(answer) ? answer['state'] : undefined) {
    case 'VirtualMachineStateRunning': return { status: 'running' }
    case 'VirtualMachineStatePaused': return { status: 'paused' }
    default: return undefined
  }
}

export class VzVm extends RestVm {
  readonly #place: Place
  readonly #guestTimeoutMs: number
  #socket: Socket | undefined
  #turn = 0
  #last: Promise<unknown> = Promise.resolve()

  constructor (handle: VmHandle, state: VmState, place: Place, options: RestVmOptions) {
    const client = clientOf(place, options.heartbeat.deadlineMs)
    super({ handle, identity: identityOf(DRIVER, handle), folder: place, vsock: VSOCK, api: API_SOCKET, ask: () => askState(client) }, state, options)
    this.#place = place
    this.#guestTimeoutMs = options.guestTimeoutMs
  }

  /** One after the other: the guest serves the newest connection. */
  override connect (): Promise<Duplex> {
    const turn = ++this.#turn
    this.#socket?.destroy()
    const opened = this.#last.then(() => this.#open(turn))
    this.#last = opened.catch(() => {})
    return opened
  }

  /** The guest may still be booting: retried until it answers. */
  async #open (turn: number): Promise<Duplex> {
    const deadline = performance.now() + this.#guestTimeoutMs
    // Another connection has replaced this one meanwhile, and ends it as it would end an open one.
    for (let pauseMs = PAUSES_MS.first; turn === this.#turn; pauseMs = Math.min(pauseMs * 2, PAUSES_MS.most)) {
      if (this.state.status === 'gone') throw VmGone(this.handle.directory)
      try {
        this.#socket = await connectAgent(this.#place.path, ATTEMPT_MS)
        if (turn !== this.#turn) this.#socket.destroy()
        return this.#socket
      } catch (error) {
        if (performance.now() > deadline) throw error
      }
      await sleep(pauseMs)
    }
    return new Socket().destroy()
  }

  override release (): void {
    this.#socket?.destroy()
    super.release()
  }
}
