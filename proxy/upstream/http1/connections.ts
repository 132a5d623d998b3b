// The pool of HTTP/1.1 connections to one origin of one VM.
import { fail, type OriginCall } from './call.ts'
import type { ConnectionOwner, OriginConnection } from './connection.ts'

export interface ConnectionsOptions {
  readonly most: number
  readonly connect: (owner: ConnectionOwner) => Promise<OriginConnection>
}

export class OriginConnections implements ConnectionOwner {
  readonly #options: ConnectionsOptions
  readonly #open = new Set<OriginConnection>()
  readonly #idle: OriginConnection[] = []
  readonly #waiting: OriginCall[] = []
  #connecting = 0

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
    if (this.#open.size + this.#connecting < this.#options.most) void this.#connect(call)
    else this.#waiting.push(call)
  }

  free (connection: OriginConnection): void {
    const call = this.#waiting.shift()
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
    for (const connection of this.#open) connection.destroy()
  }

  #use (connection: OriginConnection, call: OriginCall): void {
    if (!connection.carry(call)) this.free(connection)
  }

  async #connect (call: OriginCall): Promise<void> {
    this.#connecting++
    let connection: OriginConnection
    try {
      connection = await this.#options.connect(this)
    } catch (error) {
      this.#connecting--
      fail(call, error)
      this.#connectForNext()
      return
    }
    this.#connecting--
    this.#open.add(connection)
    this.#use(connection, call)
  }

  #connectForNext (): void {
    if (this.#open.size + this.#connecting >= this.#options.most) return
    const call = this.#waiting.shift()
    if (call !== undefined) void this.#connect(call)
  }
}
