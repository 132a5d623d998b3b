// The one owner of the connections to an origin, each from its dial until it is closed. Whoever has used a connection lets it go, and it ends within a bounded time, whatever the origin does.
import type { Socket } from 'node:net'
import type { Vet } from '../contract/vet.ts'
import type { Passing } from './passing.ts'

export class OriginSockets {
  readonly #open = new Set<Socket>()
  readonly #leaving = new WeakSet<Socket>()
  readonly #passing: Passing
  readonly #lingerMs: number

  /** @param lingerMs that an origin has to take what was written last */
  constructor (passing: Passing, lingerMs: number) {
    this.#passing = passing
    this.#lingerMs = lingerMs
  }

  /** Knows a connection from now on. */
  add (socket: Socket): void {
    this.#open.add(socket)
    socket.once('close', () => this.#open.delete(socket))
  }

  /** Nobody uses it any more: what was written is still sent, and then it is closed. */
  letGo (socket: Socket): void {
    if (socket.destroyed || this.#leaving.has(socket)) return
    this.#leaving.add(socket)
    const left = this.#passing.add()
    const timer = setTimeout(() => socket.destroy(), this.#lingerMs)
    timer.unref()
    socket.once('close', () => {
      clearTimeout(timer)
      left()
    })
    socket.destroySoon()
  }

  /** Ends the connections to addresses that may not be reached any more. */
  vetAnew (vet: Vet): void {
    // One that is being dialled has no address yet, and is vetted when it has.
    for (const socket of this.#open) if (socket.remoteAddress !== undefined && vet(socket.remoteAddress) !== undefined) socket.destroy()
  }

  /** Ends all of them at once. */
  close (): void {
    for (const socket of this.#open) socket.destroy()
  }
}
