// A pool of HTTP/1.1 connections to one origin of one VM.
import { fail, type OriginCall } from './call.ts'
import type { ConnectionOwner, OriginConnection } from './connection.ts'

export interface ConnectionsOptions {
  readonly most: number
  readonly connect: (owner: ConnectionOwner, signal: AbortSignal) => Promise<OriginConnection>
}

/** A connection that is being made. */
interface Dialling {
  /** the request that gets it; undefined: no longer wanted */
  call: OriginCall | undefined
  readonly controller: AbortController
}

export class OriginConnections implements ConnectionOwner {
  readonly #options: ConnectionsOptions
  readonly #open = new Set<OriginConnection>()
  readonly #idle: OriginConnection[] = []
  /** in the order in which they came */
  readonly #waiting = new Set<OriginCall>()
  readonly #dialling = new Map<OriginCall, Dialling>()

  constructor (options: ConnectionsOptions) {
    this.#options = options
  }

  /** Sends a request over a free connection or over a new one; at the bound on connections it waits for its turn. */
  request (call: OriginCall): void {
    // The connection that was used last is the least likely to have been closed by the origin.
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (!idle.usable) idle.destroy()
      else return this.#use(idle, call)
    }
    if (this.#open.size + this.#dialling.size < this.#options.most) void this.#connect(call)
    else this.#waiting.add(call)
  }

  /** A request that has no connection yet is not wanted any more; it is told nothing. Nothing is kept or dialled for it. */
  withdraw (call: OriginCall): void {
    if (this.#waiting.delete(call)) return
    const dialling = this.#dialling.get(call)
    if (dialling === undefined) return
    this.#dialling.delete(call)
    const next = this.#takeWaiting()
    dialling.call = next
    if (next === undefined) dialling.controller.abort()
    else this.#dialling.set(next, dialling)
  }

  /** Takes a connection in that was made for another purpose. */
  adopt (connection: OriginConnection): void {
    this.#open.add(connection)
    connection.wait()
    this.free(connection)
  }

  free (connection: OriginConnection): void {
    const call = this.#takeWaiting()
    if (call === undefined) this.#idle.push(connection)
    else this.#use(connection, call)
  }

  gone (connection: OriginConnection): void {
    this.#open.delete(connection)
    const index = this.#idle.indexOf(connection)
    if (index >= 0) this.#idle.splice(index, 1)
    this.#connectForNext()
  }

  close (): void {
    for (const { controller } of this.#dialling.values()) controller.abort()
    for (const connection of this.#open) connection.destroy()
  }

  #use (connection: OriginConnection, call: OriginCall): void {
    if (!connection.carry(call)) this.free(connection)
  }

  async #connect (wanted: OriginCall): Promise<void> {
    const dialling: Dialling = { call: wanted, controller: new AbortController() }
    this.#dialling.set(wanted, dialling)
    let connection: OriginConnection
    try {
      connection = await this.#options.connect(this, dialling.controller.signal)
    } catch (error) {
      const call = this.#dialled(dialling)
      if (call !== undefined) fail(call, error)
      this.#connectForNext()
      return
    }
    const call = this.#dialled(dialling)
    this.#open.add(connection)
    if (call === undefined) this.free(connection)
    else this.#use(connection, call)
  }

  #dialled ({ call }: Dialling): OriginCall | undefined {
    if (call !== undefined) this.#dialling.delete(call)
    return call
  }

  #connectForNext (): void {
    if (this.#open.size + this.#dialling.size >= this.#options.most) return
    const call = this.#takeWaiting()
    if (call !== undefined) void this.#connect(call)
  }

  #takeWaiting (): OriginCall | undefined {
    const [call] = this.#waiting
    if (call !== undefined) this.#waiting.delete(call)
    return call
  }
}
